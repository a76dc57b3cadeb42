"""A machine in an emulated AWS whose runner program is switched: archives, starter, restarts."""

import asyncio
import hashlib
import inspect
import json
import sys
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from exclave import __version__
from exclave.control.dispatch import runners
from exclave.control.workflows import jobs
from exclave.domain.identity import QueueId, User
from exclave.domain.jobs import JobId
from exclave.main.bundle import collect_files, pack
from exclave.main.server import Running, run_control_plane
from exclave.main.settings import ServerSettings
from exclave.runner.cloud import starter
from exclave.wire.jobs import JobReply
from exclave.wire.specs import ScriptSpec, ScriptStep
from tests.e2e.cloud_site import MACHINE, RUNNER, Account
from tests.faults.site import clean_env
from tests.support.aws_emulator import REGION, start_aws, start_imds
from tests.support.world import job, make_install, make_org, run_workflow

OLD = "0.0.9"
"""What the machine starts with; the archive on the server has the version of the server."""
_HURRIED = {
    "site/exclave/runner/loops/update_watch.py": (b"LOOK_EVERY_S: Final = 300.0", b"1.0"),
    "site/exclave/runner/loops/document_watch.py": (b"READ_EVERY_S: Final = 30.0", b"2.0"),
}
"""The programs look every second or two; else they are what a machine gets."""
_BROKEN = b"""
import sys
if "--version" not in sys.argv:
    sys.exit("this program does not start a runner")
print("exclave VERSION")
"""


def build_program(version: str, *, is_broken: bool = False) -> bytes:
    """Return an archive of the runner program; its libraries are those of this Python."""
    files = dict(collect_files(iter(())))
    for name, (line, seconds) in _HURRIED.items():
        assert files[name].count(line) == 1
        files[name] = files[name].replace(line, line.rpartition(b" ")[0] + b" " + seconds)
    own = "site/exclave/__init__.py"
    files[own] = files[own].replace(__version__.encode(), version.encode())
    if is_broken:
        files["launch.py"] = _BROKEN.replace(b"VERSION", version.encode())
    return pack(files)


def name_program(archive: bytes) -> str:
    """Return the name of the folder that a machine unpacks an archive into."""
    return hashlib.sha256(archive).hexdigest()[:16]


@dataclass
class UpdateSite:
    """The control plane with its folder of archives, and the machine with its programs."""

    plane: Running
    account: Account
    archives: Path
    root: Path
    user: User
    queue: QueueId
    starts: list[int] = field(default_factory=list)
    """The exit code of each start that has ended."""

    def offer(self, archive: bytes) -> None:
        """Put an archive where the server serves it from."""
        for machine in ("x86_64", "aarch64"):
            part = self.archives / "part"
            part.write_bytes(archive)
            part.replace(self.archives / f"runner-{__version__}-{machine}.tar.gz")

    @property
    def current(self) -> str:
        """The name of the program that the machine starts."""
        return (self.root / "current").readlink().name

    async def wait_for(self, name: str) -> None:
        """Wait until a program is the current one and works."""
        for _ in range(900):
            if self.current == name and not (self.root / "trial").exists():
                return
            await asyncio.sleep(0.1)
        raise AssertionError(self.read_log())

    async def wait_for_event(self, event: str) -> dict[str, object]:
        """Return the facts of the first entry of the audit of a kind."""
        file = self.root / "data" / "audit.jsonl"
        for _ in range(900):
            lines = file.read_text().splitlines() if file.exists() else []
            for entry in map(json.loads, lines):
                if entry["event"] == event:
                    return dict(entry["facts"])
            await asyncio.sleep(0.1)
        raise AssertionError(self.read_log())

    async def start_job(self, script: str) -> JobId:
        """Queue a job that runs a script."""
        spec = ScriptSpec(steps=[ScriptStep(name="work", script=script)], timeout_s=60.0)
        flow = await run_workflow(self.plane.deps, self.user, self.queue, job("work", spec=spec))
        queued = flow.steps[0].job_id
        assert queued is not None
        return JobId(queued)

    async def wait_for_job(self, queued: JobId) -> JobReply:
        """Return a job that has ended."""
        for _ in range(900):
            reply = await jobs.show_job(self.plane.deps, self.user, queued)
            if reply.finished_at is not None:
                return reply
            await asyncio.sleep(0.1)
        raise AssertionError(self.read_log())

    def read_log(self) -> str:
        """Return the end of what the starts of the runner printed."""
        return (self.root / "log").read_text()[-4000:]

    async def keep_running(self, env: dict[str, str]) -> None:
        """Start the runner whenever it has ended, as systemd does; stop it when cancelled."""
        words = [str(self.root / "start.py"), "runner", "--boot", str(self.root / "boot.json")]
        while True:
            with (self.root / "log").open("ab") as out:
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-I", *words, env=env, stdout=out, stderr=out
                )
            try:
                self.starts.append(await process.wait())
            finally:
                if process.returncode is None:
                    process.terminate()
                    await process.wait()
            await asyncio.sleep(0.2)


@asynccontextmanager
async def open_update_site(folder: Path) -> AsyncIterator[UpdateSite]:
    """Start a control plane, an account, and a machine that runs the old program."""
    archives = folder / "archives"
    archives.mkdir()
    settings = ServerSettings(
        data=folder / "server", control_port=0, runner_port=0, attest="off", bundles=archives
    )
    with start_aws() as aws:
        account = Account(aws)
        account.create()
        account.say(updates="auto")
        with account.as_owner():
            keys = aws.assume(RUNNER, MACHINE)
        with start_imds(RUNNER, keys) as imds:
            async with run_control_plane(settings) as plane:
                env = clean_env(
                    {
                        "RUNNER_DATA": str(folder / "machine" / "data"),
                        "METADATA_URL": imds.url,
                        "CLOUD_URL": aws.url,
                    }
                )
                site = await _install(folder, plane, account, archives)
                running = asyncio.create_task(site.keep_running(env))
                try:
                    yield site
                finally:
                    running.cancel()
                    with suppress(asyncio.CancelledError):
                        await running


async def _install(folder: Path, plane: Running, account: Account, archives: Path) -> UpdateSite:
    """Leave what the boot script leaves on a machine."""
    user = await make_org(plane.deps)
    queue = await make_install(plane.deps, user)
    made = await runners.create_enrolment(plane.deps, user, queue)
    async with httpx.AsyncClient(trust_env=False) as http:
        keys = (await http.get(f"{plane.runner_url}/v1/keys")).json()["keys"]
    boot = {
        "install": queue,
        "cloud": "aws",
        "runner_url": plane.runner_url,
        "keys": keys,
        "region": REGION,
        "document": account.document,
        "code": made.token,
    }
    root = folder / "machine"
    old = build_program(OLD)
    program = root / "versions" / name_program(old)
    program.mkdir(parents=True)
    (folder / "old").write_bytes(old)
    with tarfile.open(folder / "old") as archive:
        archive.extractall(program, filter="data")
    (root / "current").symlink_to(Path("versions") / program.name)
    (root / "boot.json").write_text(json.dumps(boot))
    source = inspect.getsource(starter)
    (root / "start.py").write_text(source)
    return UpdateSite(plane, account, archives, root, user, queue)
