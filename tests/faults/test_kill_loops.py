"""kill -9 of real processes while real work runs: nothing is lost, nothing is done twice."""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.faults.site import Site, check_log_numbers, open_site, wait_until
from tests.support.databases import get_postgres

KILLS = int(os.environ.get("EXCLAVE_TEST_KILLS", "4"))
LINES = 40
SCRIPT = """
echo "begin $EXCLAVE_EXECUTION" >> {effects}
for n in $(seq {lines}); do echo "line $n"; sleep 0.03; done
echo "end $EXCLAVE_EXECUTION" >> {effects}
"""
ENDED = {"succeeded", "failed", "cancelled"}


@pytest.fixture(params=["sqlite", "postgres", "two-servers"], scope="module")
def shared_site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    with ExitStack() as stack:
        url = ""
        if request.param != "sqlite":
            url = stack.enter_context(get_postgres().fresh_database())
        servers = 2 if request.param == "two-servers" else 1
        folder = tmp_path_factory.mktemp("site")
        yield stack.enter_context(open_site(folder, url, servers=servers))


@pytest.fixture
def site(shared_site: Site) -> Site:
    """The site with nothing to do, in which everything runs again."""
    (shared_site.folder / "effects").unlink(missing_ok=True)
    for process in [*shared_site.servers, *shared_site.runners]:
        assert process.running is not None
        if process.running.poll() is not None:
            process.start()
    settle_lost_work(shared_site)
    return shared_site


def make_step(site: Site, name: str, *needs: str, mutating: bool) -> dict[str, Any]:
    script = SCRIPT.format(effects=site.folder / "effects", lines=LINES)
    lanes = [f"component:{name}"] if mutating else []
    spec = {"kind": "script", "steps": [{"name": "work", "script": script}]}
    return {"name": name, "needs": list(needs), "mutating": mutating, "lanes": lanes, "job": spec}


def run_flow(site: Site) -> str:
    steps = [
        make_step(site, "plan-a", mutating=False),
        make_step(site, "plan-b", mutating=False),
        make_step(site, "apply-a", "plan-a", mutating=True),
        make_step(site, "apply-b", "plan-b", mutating=True),
    ]
    made = site.post("/v1/workflows", {"name": "kill", "queue_id": site.install, "steps": steps})
    return str(made["id"])


def count_begun(site: Site) -> int:
    effects = site.folder / "effects"
    return effects.read_text().count("begin") if effects.exists() else 0


def wait_for_work(site: Site, begun: int) -> None:
    """Wait until that much work has begun, or for a while if it never does."""
    until = time.monotonic() + 8
    while count_begun(site) < begun and time.monotonic() < until:
        time.sleep(0.02)


def kill_something(site: Site, rng: random.Random) -> None:
    """Kill the runner, a server or both with -9, and start them again after a moment."""
    victims = rng.choice(["runner", "server", "both"])
    processes = []
    if victims in {"runner", "both"}:
        processes.append(site.runner)
    if victims in {"server", "both"}:
        processes.append(rng.choice(site.servers))
    for process in processes:
        assert process is not None
        process.kill9()
    time.sleep(rng.uniform(0.0, 1.0))
    for process in processes:
        assert process is not None
        process.start()


def wait_for_end(site: Site, workflow: str) -> dict[str, Any]:
    def ended() -> Any:
        shown = site.get(f"/v1/workflows/{workflow}")
        return shown if shown["state"] in ENDED else None

    return dict(wait_until(ended, f"workflow {workflow} ends", 120))


def check_workflow(site: Site, workflow: str) -> Counter[str]:
    """Compare what the control plane says with what really happened on the machine."""
    effects = (site.folder / "effects").read_text().split("\n")
    begun = Counter(line.split()[1] for line in effects if line.startswith("begin"))
    done = Counter(line.split()[1] for line in effects if line.startswith("end"))
    states: Counter[str] = Counter()
    for listed in site.get("/v1/jobs", workflow_id=workflow, limit=200)["items"]:
        job = site.get(f"/v1/jobs/{listed['id']}")
        states[job["state"]] += 1
        ran = [e["id"] for e in job["executions"] if begun[e["id"]]]
        assert all(begun[execution] == 1 for execution in ran), "an execution ran twice"
        if job["mutating"]:
            assert len(ran) <= 1, "a mutating job ran twice"
        if job["state"] == "succeeded":
            last = job["executions"][-1]
            assert done[last["id"]] == 1, "succeeded without having ended"
            check_whole_log(site, job["id"], last["id"])
        for execution in job["executions"]:
            check_log_numbers(site, job["id"], execution["id"])
    return states


def check_whole_log(site: Site, job: str, execution: str) -> None:
    def complete() -> bool:
        shown = site.get(f"/v1/jobs/{job}")
        return bool(next(e["log_complete"] for e in shown["executions"] if e["id"] == execution))

    wait_until(complete, "the log is complete")
    texts = [r["text"] for r in site.read_log(job, execution) if r["stream"] == 1]
    assert texts == [f"line {n}" for n in range(1, LINES + 1)]


def settle_lost_work(site: Site) -> None:
    """Do as an operator would: look at what lost jobs left, and release their lanes."""
    shown = site.get(f"/v1/installs/{site.install}")
    for lane in shown["lanes"]:
        if lane["state"] == "needs_reconcile":
            path = f"/v1/installs/{site.install}/lanes/{lane['name']}/release"
            site.post(path, {"reason": "checked in the kill test"})


def test_kill_9_of_runner_and_server_loses_and_doubles_nothing(site: Site) -> None:
    seed = int(os.environ.get("EXCLAVE_TEST_SEED", "1"))
    rng = random.Random(seed)
    totals: Counter[str] = Counter()
    for round_ in range(max(1, KILLS // 2)):
        before = count_begun(site)
        workflow = run_flow(site)
        for strike in (1, 2):
            wait_for_work(site, before + 2 * strike - rng.randint(0, 1))
            time.sleep(rng.uniform(0.0, 0.8))
            kill_something(site, rng)
        wait_for_end(site, workflow)
        totals += check_workflow(site, workflow)
        settle_lost_work(site)
        print(f"seed {seed} round {round_}: {dict(totals)}")

    assert set(totals) <= {"succeeded", "lost"}, totals


def test_a_killed_runner_is_seen_in_under_15_seconds_with_the_cause(site: Site) -> None:
    wait_for_runner(site, "up")
    assert site.runner is not None

    site.runner.kill9()

    assert wait_for_runner(site, "late", 15)["cause"]


def wait_for_runner(site: Site, presence: str, seconds: float = 60.0) -> dict[str, Any]:
    def look() -> Any:
        items = site.get("/v1/runners")["items"]
        return items[0] if items and items[0]["presence"] == presence else None

    return dict(wait_until(look, f"the runner is {presence}", seconds))


def test_a_change_cut_off_by_kill_9_is_lost_and_goes_on_after_a_look(site: Site) -> None:
    step = make_step(site, "apply-a", mutating=True)
    made = site.post("/v1/workflows", {"name": "k", "queue_id": site.install, "steps": [step]})
    path = f"/v1/workflows/{made['id']}"
    effects = site.folder / "effects"
    wait_until(lambda: effects.exists() and "begin" in effects.read_text(), "the change began")
    assert site.runner is not None

    site.runner.kill9()
    site.runner.start()

    assert wait_for_end(site, made["id"])["state"] == "failed"
    lost = site.get(path)["steps"][0]
    assert (lost["state"], lost["reason"]) == ("lost", "runner_restarted")
    assert "end" not in effects.read_text(), "what the dead runner left behind went on"
    check_log_numbers(
        site, lost["job_id"], site.get(f"/v1/jobs/{lost['job_id']}")["executions"][0]["id"]
    )
    settle_lost_work(site)
    site.post(f"{path}/steps/apply-a/retry")
    assert wait_for_end(site, made["id"])["state"] == "succeeded"
    check_workflow(site, made["id"])


def test_cancel_ends_a_child_that_ignores_signals(site: Site) -> None:
    script = "trap '' INT TERM; echo deaf; while true; do sleep 0.2; done"
    spec = {"kind": "script", "steps": [{"name": "deaf", "script": script}]}
    step = {"name": "deaf", "job": spec}
    made = site.post("/v1/workflows", {"name": "c", "queue_id": site.install, "steps": [step]})
    path = f"/v1/workflows/{made['id']}"
    wait_until(lambda: site.get(path)["steps"][0]["job_state"] == "running", "it runs")

    site.post(f"{path}/cancel")

    assert wait_for_end(site, made["id"])["state"] == "cancelled"
