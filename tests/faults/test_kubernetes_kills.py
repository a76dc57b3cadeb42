"""kill -9 of real servers, runners and helm while charts and manifests are planned and applied."""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exclave.runner.processes import procfs
from tests.faults.kubernetes_app import KubernetesSite, list_wanted
from tests.faults.site import check_log_numbers, make_site, wait_until
from tests.support.kubernetes import Cluster
from tests.support.tools import need_terraform

KILLS = int(os.environ.get("EXCLAVE_TEST_KILLS", "4"))
FIRST = [("runner", "apply"), ("helm", "apply"), ("server", "apply"), ("both", "plan")]
"""Whom the first kills hit, and in the midst of what; later ones are drawn."""
WIDTH_S = {"plan": 0.8, "apply": 2.0, "teardown": 1.0}
"""How long after the beginning of such a step the kill comes at the latest."""


@pytest.fixture
def shop(tmp_path: Path, cluster: Cluster, namespace: str) -> Iterator[KubernetesSite]:
    need_terraform()
    site = make_site(tmp_path)
    made = KubernetesSite(site, cluster=cluster, namespace=namespace)
    try:
        made.begin()
        made.deploy_all()
        yield made
    finally:
        site.end()


def test_kill_9_in_the_midst_of_a_deploy_is_repaired_by_the_next_one(shop: KubernetesSite) -> None:
    seed = int(os.environ.get("EXCLAVE_TEST_SEED", "1"))
    rng = random.Random(seed)
    strikes = [*FIRST, *(draw_strike(rng) for _ in range(KILLS - len(FIRST)))][:KILLS]

    for number, (victims, moment) in enumerate(strikes, 1):
        ended = kill_in(shop, shop.change_round(f"r{number}"), victims, moment, rng)
        blocked = shop.settle()
        print(f"seed {seed} kill {number}: {victims} in {moment}: {ended['state']} {blocked}")
        check_jobs(shop, ended["id"], victims)
        repair(shop, f"r{number}")


def test_kill_9_in_the_midst_of_a_teardown_is_finished_by_the_next_one(
    shop: KubernetesSite,
) -> None:
    rng = random.Random(int(os.environ.get("EXCLAVE_TEST_SEED", "1")))

    for number, victims in enumerate(["helm", "runner", "server"][: max(2, KILLS // 6)], 1):
        kill_in(shop, shop.start_work("teardown_all"), victims, "teardown", rng)
        shop.settle()
        down = shop.await_end(shop.start_work("teardown_all"))
        assert down["state"] == "succeeded", down
        shop.await_nothing()
        repair(shop, "0")
        print(f"kill {number}: {victims}")


def draw_strike(rng: random.Random) -> tuple[str, str]:
    victims = rng.choice(["runner", "server", "both", "helm", "helm"])
    return victims, rng.choice(["apply", "apply", "plan"])


def kill_in(
    shop: KubernetesSite, workflow: str, victims: str, moment: str, rng: random.Random
) -> dict[str, Any]:
    """Kill in the midst of a step of this kind; return the workflow as it ended."""
    endings = {"plan": ".plan", "apply": ".apply", "teardown": ".destroy-apply"}

    def is_there() -> bool:
        steps = shop.site.get(f"/v1/workflows/{workflow}")["steps"]
        running = [step["name"] for step in steps if step["job_state"] == "running"]
        return any(name.endswith(endings[moment]) for name in running)

    wait_until(is_there, f"it is in the midst of {moment}")
    time.sleep(rng.uniform(0.0, WIDTH_S[moment]))
    if victims == "helm":
        kill_helm(shop)
    else:
        kill_processes(shop, victims, rng)
    return shop.await_end(workflow)


def kill_processes(shop: KubernetesSite, victims: str, rng: random.Random) -> None:
    """Kill ours with -9, and start them again after a while, in which an orphaned helm goes on."""
    assert shop.site.runner is not None
    chosen = [*shop.site.servers] if victims != "runner" else []
    if victims != "server":
        chosen.append(shop.site.runner)
    for process in chosen:
        process.kill9()
    time.sleep(rng.uniform(0.0, 2.0))
    for process in chosen:
        process.start()


def kill_helm(shop: KubernetesSite) -> None:
    """Kill helm with -9 as soon as it runs; a deploy that has no use for it any more goes on."""
    until = time.monotonic() + 1.0
    folders = shop.site.folder / "runner" / "executions"
    while time.monotonic() < until:
        found = [pid for folder in folders.glob("*") for pid in procfs.list_marked(folder.name)]
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        if found:
            return
        time.sleep(0.01)


def check_jobs(shop: KubernetesSite, workflow: str, victims: str) -> None:
    """No change ran twice, whatever did not end is lost by name, and every log is whole."""
    allowed = {"succeeded"} if victims == "server" else {"succeeded", "lost", "cancelled"}
    if victims == "helm":
        allowed = {"succeeded", "failed"}
    for job in shop.list_jobs(workflow):
        assert job["state"] in allowed, (job["state"], job["reason"], job["message"])
        if job["state"] != "succeeded":
            print(job["step"], job["state"], job["reason"], job["message"])
        began = [one for one in job["executions"] if one["started_at"]]
        assert not job["mutating"] or len(began) <= 1, job
        for execution in job["executions"]:
            check_log_numbers(shop.site, job["id"], execution["id"])


def repair(shop: KubernetesSite, round_: str) -> None:
    """With nobody killed the next deploy succeeds, and leaves what is wanted and nothing else."""
    ended = shop.await_end(shop.start_work("reprovision"))

    assert ended["state"] == "succeeded", ended
    assert shop.list_objects() == list_wanted(round_)
    *older, last = shop.list_statuses()
    assert last == "deployed"
    assert set(older) <= {"superseded", "failed"}
    assert [state["lock"] for state in shop.list_states().values()] == [None] * 2
