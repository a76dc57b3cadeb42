"""Applies that are cancelled, killed, fenced off or cut off from the control plane."""

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path

from exclave.client.problems import ProxyTooLarge, Unreachable
from exclave.control.installs.installs import release_lane
from exclave.control.terraform import orphans, workspaces
from exclave.control.workflows import jobs
from exclave.domain.identity import InstallId
from exclave.domain.jobs import ExecutionId, JobId
from exclave.runner.control_plane.execution_api import PATIENCE
from exclave.runner.processes import procfs
from exclave.runner.processes.leftovers import kill_leftovers
from exclave.runner.states.unsent_state import has_pending_state
from exclave.runner.terraform.errored_state import rescue_all
from exclave.wire.jobs import Reason
from tests.support.files import get_file
from tests.support.processes import signal_marked
from tests.support.terraform import CLOCK, Ran, TerraformHarness, has_begun, make_spec

SLOW = """
resource "terraform_data" "first" {}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "echo begun; sleep 300" }
}
"""
QUICK = 'resource "terraform_data" "first" {}\nresource "terraform_data" "slow" {}'
WORKSPACE = "component:db"


async def begin_slow(
    bench: TerraformHarness, text: str = SLOW
) -> tuple["asyncio.Task[Ran]", Path, Ran]:
    bench.write(text)
    planned = await bench.plan()
    offer = await bench.offer(WORKSPACE, mutating=True)
    folder = bench.executions / offer.execution_id
    running = asyncio.create_task(bench.apply(planned, offer=offer, hand_in=False))
    await wait_until(
        running, lambda: has_begun(read(folder / "journal.jsonl"), "terraform_data.slow")
    )
    return running, folder, planned


def read(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""


def read_folder(folder: Path) -> bytes:
    return b"".join(read(file) for file in folder.iterdir()) if folder.exists() else b""


async def wait_until(running: "asyncio.Task[Ran]", check: Callable[[], bool]) -> None:
    while not check():
        assert not running.done(), running.result().text
        await asyncio.sleep(0.02)


async def find_job(bench: TerraformHarness) -> JobId:
    page = await jobs.list_jobs(
        bench.deps, bench.user, cursor="", limit=1, queue=None, workflow=None, state="running"
    )
    return JobId(page.items[0].id)


async def list_state(bench: TerraformHarness) -> list[str]:
    shown = await workspaces.list_workspaces(bench.deps, bench.user, InstallId(bench.queue))
    return [
        one.address
        for item in shown.items
        if item.newest is not None
        for one in item.newest.resources
    ]


async def find_lock(bench: TerraformHarness) -> bool:
    shown = await workspaces.list_workspaces(bench.deps, bench.user, InstallId(bench.queue))
    return any(item.lock is not None for item in shown.items)


async def test_a_cancel_in_mid_apply_saves_the_state_and_gives_the_lock_back(
    bench: TerraformHarness,
) -> None:
    running, folder, _ = await begin_slow(bench)
    assert await find_lock(bench)

    bench.stop.request(Reason.CANCELLED, 20.0)
    ran = await running

    assert (ran.outcome.state, ran.outcome.reason) == ("cancelled", "cancelled"), ran.text
    assert "terraform_data.first" in await list_state(bench)
    assert not await find_lock(bench)
    assert procfs.list_marked(folder.name) == []


async def test_after_kill_9_of_terraform_the_lock_is_free_and_orphans_can_be_imported(
    bench: TerraformHarness,
) -> None:
    running, folder, _ = await begin_slow(bench)
    assert signal_marked(folder.name, b"apply", signal.SIGKILL) > 0

    ran = await running

    assert (ran.outcome.state, ran.outcome.reason) == ("interrupted", "exit_code"), ran.text
    assert "installs orphans" in ran.outcome.message
    await bench.peer.hand_in(ran.offer.execution_id, ran.offer.epoch, ran.outcome)
    found = (await orphans.list_orphans(bench.deps, bench.user, InstallId(bench.queue))).orphans
    told = {(one.address, one.certainty) for one in found}
    assert told == {("terraform_data.first", "created"), ("terraform_data.slow", "unknown")}
    first = next(one for one in found if one.certainty == "created")
    assert procfs.list_marked(folder.name) == []

    # A person imports what was made, by the ready block, and the work goes on.
    await release_lane(bench.deps, bench.user, InstallId(bench.queue), WORKSPACE, "imported")
    bench.write(QUICK)
    bench.write(first.import_block, "import.tf")
    healed = await bench.plan_and_apply()
    assert healed.outcome.state == "succeeded", healed.text
    assert healed.outputs["summary"] == {"add": 1, "change": 0, "destroy": 0, "import": 1}
    assert not await find_lock(bench)
    assert (
        await orphans.list_orphans(bench.deps, bench.user, InstallId(bench.queue))
    ).orphans == []


async def test_a_zombie_is_fenced_off_and_its_state_is_rescued(bench: TerraformHarness) -> None:
    running, folder, _ = await begin_slow(bench)
    await jobs.declare_lost(bench.deps, bench.user, await find_job(bench), "its machine is gone")
    bench.peer.alive.clear()
    await release_lane(bench.deps, bench.user, InstallId(bench.queue), WORKSPACE, "looked")
    bench.write(QUICK)
    stop = bench.stop
    newer = await bench.plan_and_apply()
    assert newer.outcome.state == "succeeded", newer.text
    before = await list_state(bench)

    stop.request(Reason.RUNNER_STOPPED_IT, 20.0)
    ran = await running

    assert ran.outcome.state == "interrupted", ran.text
    assert "409" in ran.text
    assert await list_state(bench) == before
    rescued = await get_file(
        bench.deps, bench.peer.who, ExecutionId(folder.name), "errored.tfstate.sealed"
    )
    assert b"terraform_data.first" in rescued.partition(b"\n")[0]
    assert not has_pending_state(folder)
    journal = await get_file(bench.deps, bench.peer.who, ExecutionId(folder.name), "journal.jsonl")
    assert b"terraform_data.first" in journal


async def test_a_control_plane_that_is_away_during_an_apply_loses_nothing(
    bench: TerraformHarness,
) -> None:
    running, _, _ = await begin_slow(bench, SLOW.replace("sleep 300", "sleep 1"))
    bench.api.down = True
    before = len(bench.api.calls)
    await wait_until(running, lambda: len(bench.api.calls) > before + 3)
    assert not running.done()

    bench.api.down = False
    ran = await running

    assert ran.outcome.state == "succeeded", ran.text
    assert sorted(await list_state(bench)) == ["terraform_data.first", "terraform_data.slow"]
    assert not await find_lock(bench)


async def test_a_timeout_ends_the_apply_in_peace(bench: TerraformHarness) -> None:
    bench.write(SLOW)
    planned = await bench.plan()

    ran = await bench.apply(planned, timeout_s=8.0)

    assert (ran.outcome.state, ran.outcome.reason) == ("failed", "timeout"), ran.text
    assert not await find_lock(bench)


async def test_a_stop_before_the_work_changes_nothing(bench: TerraformHarness) -> None:
    bench.write(QUICK)
    planned = await bench.plan()
    offer = await bench.offer(WORKSPACE, mutating=True)
    running = asyncio.create_task(
        bench.run(make_spec("plan", delay_s=300.0), offer=offer, hand_in=False)
    )
    folder = bench.executions / offer.execution_id
    await wait_until(running, lambda: b"before the next attempt" in read_folder(folder / "log"))

    bench.stop.request(Reason.CANCELLED, 5.0)
    ran = await running

    assert ran.outcome.state == "cancelled"
    assert planned.outcome.state == "succeeded"
    assert await list_state(bench) == []


async def test_a_lock_of_a_living_execution_is_respected(bench: TerraformHarness) -> None:
    running, _, planned = await begin_slow(bench)
    assert planned.outcome.state == "succeeded"
    held = (
        (await workspaces.list_workspaces(bench.deps, bench.user, InstallId(bench.queue)))
        .items[0]
        .lock
    )
    assert held is not None
    assert held.operation == "OperationTypeApply"

    bench.stop.request(Reason.CANCELLED, 20.0)
    await running


async def test_the_journal_holds_addresses_and_ids_only(bench: TerraformHarness) -> None:
    bench.write("""
variable "secret" {}
resource "terraform_data" "a" {
  input = var.secret
  provisioner "local-exec" { command = "echo ${var.secret}" }
}
""")

    ran = await bench.plan_and_apply(vars={"secret": "((exclave:secret:token))"})

    data = await get_file(
        bench.deps, bench.peer.who, ExecutionId(ran.offer.execution_id), "journal.jsonl"
    )
    lines = [json.loads(line) for line in data.splitlines()]
    assert [line["type"] for line in lines] == [
        "begin",
        "planned_change",
        "apply_start",
        "apply_complete",
        "end",
    ]
    assert lines[3]["id_key"] == "id"
    assert b"canary" not in data
    assert "canary" not in ran.text


async def test_a_state_that_only_the_disk_has_is_stored_by_the_next_start(
    bench: TerraformHarness,
) -> None:
    bench.write(QUICK)
    planned = await bench.plan()
    offer = await bench.offer(WORKSPACE, mutating=True)
    folder = bench.executions / offer.execution_id

    async def lose_writes(name: str) -> None:
        if name == "write":
            raise Unreachable("the line is cut")

    bench.api.before = lose_writes
    running = asyncio.create_task(bench.apply(planned, offer=offer, hand_in=False))
    await wait_until(running, lambda: has_pending_state(folder))
    running.cancel()  # like a crash of the runner
    await asyncio.gather(running, return_exceptions=True)
    await kill_leftovers(folder, CLOCK)
    bench.api.before = None

    await rescue_all(folder, bench.bind(offer), bench.sealer, PATIENCE, str)

    assert sorted(await list_state(bench)) == ["terraform_data.first", "terraform_data.slow"]
    assert not has_pending_state(folder)
    journal = await get_file(
        bench.deps, bench.peer.who, ExecutionId(offer.execution_id), "journal.jsonl"
    )
    assert journal.count(b"apply_complete") == 2


async def test_a_state_too_large_for_a_proxy_ends_the_apply_with_a_hint(
    bench: TerraformHarness,
) -> None:
    bench.write(QUICK)
    planned = await bench.plan()
    offer = await bench.offer(WORKSPACE, mutating=True)

    async def refuse_large(name: str) -> None:
        if name in {"write", "put errored.tfstate.sealed"}:
            raise ProxyTooLarge(f"POST /v1/executions/{offer.execution_id}/state", 5 << 20)

    bench.api.before = refuse_large
    ran = await bench.apply(planned, offer=offer, hand_in=False)

    assert (ran.outcome.state, ran.outcome.reason) == ("interrupted", "state_refused")
    assert "refuses a body of 5242880 bytes" in ran.outcome.message
    assert "client_max_body_size" in ran.outcome.message
    assert "the runner keeps it and sends it again" in ran.outcome.message
    assert has_pending_state(bench.executions / offer.execution_id)


async def test_a_plan_too_large_for_a_proxy_fails_the_job_with_a_hint(
    bench: TerraformHarness,
) -> None:
    bench.write(QUICK)

    async def refuse_large(name: str) -> None:
        if name == "put plan.sealed":
            raise ProxyTooLarge("PUT /v1/executions/exe_1/attachments/plan.sealed", 5 << 20)

    bench.api.before = refuse_large
    ran = await bench.plan()

    assert ran.outcome.state == "failed"
    assert "client_max_body_size" in ran.outcome.message
