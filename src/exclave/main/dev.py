"""`exclave dev`: control plane, build runner and Stacks in one process tree and data folder."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from exclave.base.errors import Unavailable
from exclave.base.logs import Log
from exclave.control.access import authenticate_user
from exclave.control.deps import Deps
from exclave.control.dispatch.runners import create_enrolment, list_runners
from exclave.control.orgs.accounts import create_org, who_am_i
from exclave.domain.identity import QueueId, User
from exclave.main.children import clean_environment, run_child
from exclave.main.dev_stacks import DevStacks
from exclave.main.server import Running, run_control_plane
from exclave.main.settings import ServerSettings
from exclave.wire.identity import PresenceState

log = Log("dev")

LOGIN = "dev.json"
_RESTART_S = 2.0
_UP_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Dev:
    """A running development setup."""

    running: Running
    user: User
    token: str


@contextlib.asynccontextmanager
async def run_dev(settings: ServerSettings, options: Sequence[str] = ()) -> AsyncIterator[Dev]:
    """Run everything while the block lasts; later starts reuse the data folder.

    `options` are those of `stack up` for the Stacks on this machine.
    """
    async with run_control_plane(settings, runs_stacks=True) as running:
        deps = running.deps
        token = await _find_login(settings, running)
        user = await authenticate_user(deps, token)
        build = QueueId((await who_am_i(deps, user)).org.build_queue_id)
        children = [
            asyncio.create_task(_keep_runner(settings, running, user, "build", build)),
            asyncio.create_task(DevStacks(settings.data, running, user, options).run()),
        ]
        try:
            await _wait_until_up(deps, user, build)
            yield Dev(running, user, token)
        finally:
            for child in children:
                child.cancel()
            await asyncio.gather(*children, return_exceptions=True)


async def _find_login(settings: ServerSettings, running: Running) -> str:
    """Return the token that the first start stored, or create org, account and token."""
    file = settings.data / LOGIN
    if file.exists():
        token = str(json.loads(file.read_text())["token"])
    else:
        deps = running.deps
        made = await deps.db.write(lambda tx: create_org(tx, deps, "dev", "dev"))
        token = made.token
    # Commands accept loopback addresses only; a server that listens everywhere has one.
    url = running.control_url.replace("//0.0.0.0:", "//127.0.0.1:")
    _write_private(file, {"control_url": url, "token": token})
    return token


def _write_private(file: Path, value: Mapping[str, str]) -> None:
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as out:
        json.dump(value, out)
    fresh.replace(file)


async def _keep_runner(
    settings: ServerSettings, running: Running, user: User, name: str, queue: QueueId
) -> None:
    """Keep a runner process running, as an init system would; stop it on cancellation."""
    folder = settings.data / "runners" / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    while True:
        env = clean_environment()
        if not (folder / "identity.json").exists():
            made = await create_enrolment(running.deps, user, queue)
            env["EXCLAVE_ENROLMENT"] = made.token
        argv = [
            sys.executable,
            "-m",
            "exclave",
            "runner",
            "--data",
            str(folder),
            "--url",
            running.runner_url,
            "--name",
            f"dev-{name}",
        ]
        code = await run_child(argv, settings.data / "runners" / f"{name}.log", env)
        log.warning("runner_exited", name=name, code=code)
        await asyncio.sleep(_RESTART_S)


async def _wait_until_up(deps: Deps, user: User, build: QueueId) -> None:
    until = deps.clock.monotonic() + _UP_WITHIN_S
    while deps.clock.monotonic() < until:
        page = await list_runners(deps, user, "", 200, build)
        if any(runner.presence is PresenceState.UP for runner in page.items):
            return
        await asyncio.sleep(0.05)
    raise Unavailable(
        "the build runner did not start", hint="Look at `runners/build.log` in the data folder."
    )
