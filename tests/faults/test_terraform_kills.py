"""kill -9 of real servers and runners while real Terraform plans and applies."""

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.faults.site import KillableProcess, check_log_numbers, make_site, wait_until
from tests.faults.terraform_app import COMPONENTS, NAMES, TerraformSite
from tests.support.databases import get_postgres
from tests.support.tools import need_terraform

KILLS = int(os.environ.get("EXCLAVE_TEST_KILLS", "3"))
FIRST = [("runner", "apply"), ("server", "apply"), ("both", "plan")]
"""Whom the first kills hit, and in the midst of what; later ones are drawn."""
SURE = len(COMPONENTS) * len(NAMES)
"""What every round makes, even one whose states know of nothing that could go."""


@pytest.fixture(params=["sqlite", "postgres"])
def colours(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TerraformSite]:
    need_terraform()
    with ExitStack() as stack:
        url = ""
        if request.param == "postgres":
            url = stack.enter_context(get_postgres().fresh_database())
        made = make_site(tmp_path, url)
        stack.callback(made.end)
        site = TerraformSite(made)
        site.begin()
        yield site


def test_kill_9_in_the_midst_of_terraform_loses_and_doubles_no_resource(
    colours: TerraformSite,
) -> None:
    seed = int(os.environ.get("EXCLAVE_TEST_SEED", "1"))
    rng = random.Random(seed)
    strikes = [*FIRST, *(draw_strike(rng) for _ in range(KILLS - len(FIRST)))][:KILLS]

    for number, (victims, moment) in enumerate(strikes, 1):
        before = count_changes(colours)
        workflow = colours.change_round(str(number))
        await_moment(colours, workflow, moment, before + rng.randint(1, SURE))
        time.sleep(rng.uniform(0.0, 0.4))
        strike(colours, victims, rng)
        ended = colours.await_end(workflow)
        blocked = colours.settle()
        print(f"seed {seed} kill {number}: {victims} in {moment}: {ended['state']} {blocked}")
        check_jobs(colours, workflow, victims)

    assert not colours.find_doubles()
    check_last_round(colours)
    check_end(colours)


def draw_strike(rng: random.Random) -> tuple[str, str]:
    return rng.choice(["runner", "server", "both"]), rng.choice(["apply", "apply", "plan"])


def count_changes(colours: TerraformSite) -> int:
    world = colours.read_world()
    return len(world.made) + len(world.gone)


def await_moment(colours: TerraformSite, workflow: str, moment: str, changes: int) -> None:
    """Wait until the work is in the midst of a plan, or of an apply that has done so much."""

    def applies() -> bool:
        return count_changes(colours) >= changes

    def plans() -> bool:
        steps = colours.site.get(f"/v1/workflows/{workflow}")["steps"]
        return any(s["name"].endswith(".plan") and s["job_state"] == "running" for s in steps)

    wait_until(applies if moment == "apply" else plans, f"it is in the midst of {moment}")


def strike(colours: TerraformSite, victims: str, rng: random.Random) -> None:
    """Kill with -9, and start again after a while, in which orphaned Terraform goes on."""
    site = colours.site
    assert site.runner is not None
    chosen: list[KillableProcess] = []
    if victims != "server":
        chosen.append(site.runner)
    if victims != "runner":
        chosen += site.servers
    for process in chosen:
        process.kill9()
    time.sleep(rng.uniform(0.0, 2.0))
    for process in chosen:
        process.start()


def check_jobs(colours: TerraformSite, workflow: str, victims: str) -> None:
    """No change ran twice, whatever did not end is lost by name, and every log is whole."""
    worked = {one.execution for one in colours.read_world().made}
    for job in colours.list_jobs(workflow):
        allowed = {"succeeded"} if victims == "server" else {"succeeded", "lost", "cancelled"}
        assert job["state"] in allowed, (job["state"], job["reason"], job["message"])
        if job["mutating"]:
            assert len(worked & {one["id"] for one in job["executions"]}) <= 1
        for execution in job["executions"]:
            check_log_numbers(colours.site, job["id"], execution["id"])
        if job["state"] == "succeeded" and job["mutating"]:
            check_whole_log(colours, job)


def check_whole_log(colours: TerraformSite, job: dict[str, Any]) -> None:
    last = job["executions"][-1]["id"]

    def is_complete() -> bool:
        shown = colours.site.get(f"/v1/jobs/{job['id']}")["executions"]
        return bool(next(one["log_complete"] for one in shown if one["id"] == last))

    wait_until(is_complete, "the log is complete")
    text = "\n".join(record["text"] for record in colours.site.read_log(job["id"], last))
    for name in NAMES:
        assert f"terraform_data.{name}: Creation complete" in text
    assert "Apply complete!" in text


def check_last_round(colours: TerraformSite) -> None:
    """With nobody killed all is well: states are right, locks free, the rest is told of."""
    ended = colours.await_end(colours.change_round("last"))
    assert ended["state"] == "succeeded", ended
    known = {
        (workspace, one["address"], one["id"])
        for workspace, state in colours.list_states().items()
        for one in state["newest"]["resources"]
    }
    alive = {(one.workspace, one.address, one.id) for one in colours.read_world().alive}
    wanted = {
        (f"component:{part}", f"terraform_data.{name}") for part in COMPONENTS for name in NAMES
    }
    assert {(workspace, address) for workspace, address, _ in known} == wanted
    assert len(known) == len(wanted)
    assert known <= alive, "the state tells of what is not there"
    lost = [
        one
        for one in colours.read_world().alive
        if (one.workspace, one.address, one.id) not in known
    ]
    assert all(colours.is_told(one) for one in lost), (lost, colours.orphans)
    assert [state["lock"] for state in colours.list_states().values()] == [None] * 2


def check_end(colours: TerraformSite) -> None:
    """A teardown leaves empty states, and in the world only what people were told of."""
    down = colours.await_end(colours.start_work("teardown_all"))

    assert down["state"] == "succeeded", down
    states = colours.list_states().values()
    assert [state["newest"]["resources"] for state in states] == [[]] * 2
    assert all(colours.is_told(one) for one in colours.read_world().alive)
