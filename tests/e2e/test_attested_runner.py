"""A real server and real runners on an emulated AWS: they enrol with nothing but their machine."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from exclave.control.access import authenticate_user
from exclave.control.deps import Deps
from exclave.control.orgs.accounts import create_org
from exclave.domain.identity import User
from exclave.domain.runner_principals import name_aws_role
from exclave.domain.stacks import Cloud
from exclave.main.composition import build_deps
from exclave.main.settings import ServerSettings
from exclave.storage.tables.installs import app_installs
from tests.faults.site import TIMINGS, KillableProcess, clean_env, exclave, find_port, wait_until
from tests.support.aws_emulator import ACCOUNT, REGION, Aws, start_aws, start_imds
from tests.support.installs import make_app, make_app_install

INSTALLS = {"known": ACCOUNT, "unknown": None, "guarded": ACCOUNT, "steady": ACCOUNT}
MACHINES = ("i-0123456789abcdef0", "i-0fedcba9876543210")


@dataclass
class Site:
    """A control plane whose AWS is emulated, and the machines of its installs."""

    folder: Path
    url: str
    client: httpx.Client
    aws: Aws

    def find_install(self, name: str) -> str:
        """Return an install; its Stack has made the role of the runner."""
        listed = self.get("/v1/installs", name=name)["items"]
        install = str(listed[0]["id"])
        self.aws.check_signatures(on=False)
        self.aws.make_role(name_aws_role(install))
        return install

    def get(self, path: str, **query: Any) -> Any:
        reply = self.client.get(path, params=query)
        assert reply.status_code == 200, (path, reply.text)
        return reply.json()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        reply = self.client.post(path, json=body)
        assert reply.status_code < 300, (path, reply.text)
        return reply.json()

    @contextmanager
    def start_machine(
        self,
        install: str,
        machine: str,
        *,
        role: str = "",
        account: str = ACCOUNT,
        code: str = "",
    ) -> Iterator["Machine"]:
        """Boot a machine with the role of the install; its disk is empty."""
        self.aws.check_signatures(on=False)
        role = role or name_aws_role(install)
        keys = self.aws.assume(role, machine, account)
        self.aws.check_signatures()
        folder = self.folder / f"{install}-{machine}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        boot = {
            "install": install,
            "cloud": "aws",
            "runner_url": self.url,
            "keys": httpx.get(f"{self.url}/v1/keys", trust_env=False).json()["keys"],
            "region": REGION,
            "code": code,
        }
        (folder / "boot.json").write_text(json.dumps(boot))
        with start_imds(role, keys) as imds:
            argv = [*exclave(), "runner", "--data", str(folder / "data")]
            argv += ["--boot", str(folder / "boot.json")]
            env = clean_env({"METADATA_URL": imds.url, "LOG_LEVEL": "info", "RUN_AS": "none"})
            process = KillableProcess(argv, env, folder / "runner.log")
            process.start()
            try:
                yield Machine(folder, process)
            finally:
                process.stop()

    def find_account(self, install: str) -> Any:
        return self.get(f"/v1/installs/{install}/account")

    def wait_for_runner(self, install: str, machine: str) -> str:
        """Wait until a machine is the runner of an install and polls; return the runner's id."""

        def look() -> str:
            account = self.find_account(install)
            if account["machine"] != machine:
                return ""
            runner = self.get(f"/v1/runners/{account['runner_id']}")
            return str(runner["id"]) if runner["seen_at"] else ""

        return str(wait_until(look, f"{machine} is the runner"))

    def run_job(self, install: str) -> None:
        """Run a job on the install's runner."""
        steps = [{"name": "ping", "job": {"kind": "noop"}}]
        body = {"name": "ping", "queue_id": install, "steps": steps}
        workflow = self.post("/v1/workflows", body)["id"]
        wait_until(
            lambda: self.get(f"/v1/workflows/{workflow}")["state"] == "succeeded", "the job ends"
        )


@dataclass
class Machine:
    """A machine with a runner on it."""

    folder: Path
    process: KillableProcess

    @property
    def log(self) -> str:
        return (self.folder / "runner.log").read_text()

    def wait_for_log(self, words: str) -> None:
        wait_until(lambda: words in self.log, f"the runner logs {words}")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("attested")
    control, runner = find_port(), find_port()
    url = f"http://127.0.0.1:{runner}"
    token = asyncio.run(_prepare(ServerSettings(data=folder / "data", runner_url=url)))
    with start_aws() as aws:
        env = clean_env(
            {
                **TIMINGS,
                "CONTROL_PORT": str(control),
                "RUNNER_PORT": str(runner),
                "RUNNER_URL": url,
                "ATTEST": "aws",
                "ATTEST_STS_URL": aws.url,
            }
        )
        argv = [*exclave(), "server", "--data", str(folder / "data")]
        server = KillableProcess(argv, env, folder / "server.log")
        server.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{control}", timeout=30) as client:
            client.headers["Authorization"] = f"Bearer {token}"
            try:
                wait_until(lambda: _answers(client), "the server answers")
                yield Site(folder, url, client, aws)
            finally:
                server.stop()


async def _prepare(settings: ServerSettings) -> str:
    deps = build_deps(settings)
    try:
        made = await deps.db.write(lambda tx: create_org(tx, deps, "acme", "admin"))
        user = await authenticate_user(deps, made.token)
        await make_app(deps, user, "shop")
        for name, account in INSTALLS.items():
            await _make_install(deps, user, name, account)
    finally:
        deps.db.close()
    return made.token


async def _make_install(deps: Deps, user: User, name: str, account: str | None) -> None:
    """Make an install, and move it to AWS."""
    made = await make_app_install(deps, user, "shop", name, provision=False)
    place = {"target": Cloud.AWS, "region": REGION, "account": account}
    row = update(app_installs).where(app_installs.c.install_id == made.id).values(place)
    await deps.db.write(lambda tx: tx.run(row))


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/v1/whoami").status_code == 200
    except httpx.TransportError:
        return False


def test_a_machine_that_is_killed_and_wiped_enrols_again_without_a_person(cloud: Site) -> None:
    install = cloud.find_install("known")
    with cloud.start_machine(install, MACHINES[0]) as machine:
        first = cloud.wait_for_runner(install, MACHINES[0])
        cloud.run_job(install)
        machine.process.kill9()

    with cloud.start_machine(install, MACHINES[1]):
        second = cloud.wait_for_runner(install, MACHINES[1])
        cloud.run_job(install)

    assert first != second
    before, now = (cloud.get(f"/v1/runners/{runner}") for runner in (first, second))
    assert (before["name"], before["state"]) == (MACHINES[0], "revoked")
    assert (now["name"], now["state"]) == (MACHINES[1], "active")
    assert before["cause"] == f"replaced by {MACHINES[1]}"
    assert cloud.find_account(install)["pinned_by"] == "creation"


def test_the_code_of_an_unknown_account_decides_once(cloud: Site) -> None:
    install = cloud.find_install("unknown")
    code = cloud.post("/v1/enrolments", {"queue_id": install})["token"]
    with cloud.start_machine(install, MACHINES[0], code=code):
        cloud.wait_for_runner(install, MACHINES[0])

    with cloud.start_machine(install, MACHINES[1]):
        cloud.wait_for_runner(install, MACHINES[1])

    account = cloud.find_account(install)
    assert (account["account"], account["pinned_by"]) == (ACCOUNT, "code")


def test_foreign_machines_stay_outside_and_are_shown(cloud: Site) -> None:
    install = cloud.find_install("guarded")
    cloud.aws.make_role("other")
    alarms = []

    for foreign in ({"account": "999999999999"}, {"role": "other"}):
        with cloud.start_machine(install, MACHINES[0], **foreign) as machine:
            machine.wait_for_log("attestation_refused")
        account = cloud.find_account(install)
        alarms.append(account["alarm"])
        assert account["runner_id"] is None

    assert "of 999999999999" in alarms[0]
    assert "(other) tried to enrol" in alarms[1]


def test_a_machine_restarted_with_its_disk_keeps_its_identity(cloud: Site) -> None:
    install = cloud.find_install("steady")
    with cloud.start_machine(install, MACHINES[0]) as machine:
        first = cloud.wait_for_runner(install, MACHINES[0])
        machine.process.kill9()
        machine.process.start()
        cloud.run_job(install)

        assert cloud.find_account(install)["runner_id"] == first
