"""One org, or a runner of it, does its worst to a control plane; another org notices nothing.

The server has little memory and few file descriptors. While each attack runs, a job of the other org
runs on a real runner that gives it up when renewals fail for twenty seconds.
"""

import resource
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.faults.site import UNHURRIED, Site, make_site, wait_until
from tests.support.attacks import ATTACKS, Attack
from tests.support.databases import get_postgres
from tests.support.tenants import Tenant

MEMORY = 900 << 20
FILES = 1024
ENDED = {"succeeded", "failed", "cancelled", "lost"}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    with ExitStack() as stack:
        url = ""
        if request.param != "sqlite":
            url = stack.enter_context(get_postgres().fresh_database())
        made = make_site(tmp_path_factory.mktemp("site"), url, timings=UNHURRIED)
        for server in made.servers:
            server.limits = {resource.RLIMIT_DATA: MEMORY, resource.RLIMIT_NOFILE: FILES}
        stack.callback(made.end)
        made.begin()
        yield made


@pytest.fixture(scope="module")
def globex(site: Site) -> Iterator[Tenant]:
    """Another org, with a build runner that behaves."""
    urls = [f"http://127.0.0.1:{port}" for port in site.ports[0]]
    tenant = Tenant(urls[0], urls[1], site.add_org("globex"))
    builds = tenant.get("/v1/whoami")["org"]["build_queue_id"]
    enrolment = tenant.post("/v1/enrolments", {"queue_id": builds})["token"]
    site.start_enrolled("globex-builds", enrolment)
    yield tenant
    tenant.close()


@pytest.fixture
def hostile(globex: Tenant) -> Iterator[Tenant]:
    tenant = globex.clone()
    yield tenant
    tenant.close()


def start_job(site: Site, script: str) -> str:
    job = {"kind": "script", "steps": [{"name": "work", "script": script}]}
    body = {"name": "w", "queue_id": site.install, "steps": [{"name": "step", "job": job}]}
    return str(site.post("/v1/workflows", body)["id"])


def read_job(site: Site, workflow: str) -> dict[str, Any]:
    (listed,) = site.get("/v1/jobs", workflow_id=workflow, limit=10)["items"]
    return dict(site.get(f"/v1/jobs/{listed['id']}"))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_an_attack_disturbs_nobody_else(
    site: Site, hostile: Tenant, attack: Attack, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    workflow = start_job(site, f"while [ ! -e {gate} ]; do sleep 0.1; done")
    wait_until(lambda: read_job(site, workflow)["state"] == "running", "the job runs")

    statuses = attack(hostile)

    gate.touch()
    ended = wait_until(
        lambda: (job := read_job(site, workflow))["state"] in ENDED and job, "the job ends"
    )
    # An offer that never reached the runner is made again; what counts is what ran.
    started = [one for one in ended["executions"] if one["started_at"] is not None]
    assert (ended["state"], len(started)) == ("succeeded", 1), ended["executions"]
    assert 500 not in statuses, statuses
    process = site.servers[0].running
    assert process is not None
    assert process.poll() is None, "the server is still the same process"
