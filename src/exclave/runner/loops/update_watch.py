"""Updates of the runner program on a machine in a cloud: fetched, verified, tried when idle."""

import asyncio
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.client.problems import RemoteProblem
from exclave.client.stacks import StackApi
from exclave.client.transport import Link
from exclave.runner.cloud.document import CloudDocument, ProgramPin
from exclave.runner.cloud.program_folders import ProgramFolders
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.executions.deps import Deps
from exclave.runner.loops.apart import RunApart
from exclave.runner.loops.retiring import retire
from exclave.wire.envelope import EnvelopeRefused
from exclave.wire.stacks import RELEASE_SIGNED, ProgramRelease

_log = Log("runner.updates")

LOOK_EVERY_S: Final = 300.0
_CONTACT_EVERY_S: Final = 0.5
_HIGHEST: Final = "program-version"


class FetchProgram(Protocol):
    """Brings a program onto the machine."""

    async def prepare(self, link: Link, version: str, digest: str) -> None:
        """Fetch a program unless it is there; raise `Problem` if it cannot be used."""
        ...


class UpdateWatch:
    """Looks for another program as the document says, and lets the next start try it.

    `auto`: what the control plane offers, signed with its key and never older than before.
    `pinned`: what the document names, and nothing else.
    """

    def __init__(
        self,
        folders: ProgramFolders,
        read_document: Callable[[], CloudDocument | None],
        api: StackApi,
        machine: str,
        fetch: FetchProgram,
        run_apart: RunApart = asyncio.to_thread,
    ) -> None:
        self._folders = folders
        self._read_document = read_document
        self._api = api
        self._machine = machine
        self._fetch = fetch
        self._run_apart = run_apart

    async def run(self, deps: Deps) -> None:
        """Confirm this program, then look for another one; stop the runner to try that."""
        await self._confirm(deps)
        while not await self._update(deps):
            await deps.clock.sleep(LOOK_EVERY_S)
        deps.signals.stopping.set()

    async def _confirm(self, deps: Deps) -> None:
        """Note that this program reaches the control plane, or that another one did not."""
        name, reason = self._folders.find_failure()
        if name:
            _log.error("update_failed", program=name, message=reason)
            deps.audit.write("update_failed", program=name, message=reason)
        while deps.signals.contact_at is None:
            await deps.clock.sleep(_CONTACT_EVERY_S)
        if await self._run_apart(self._folders.confirm):
            deps.audit.write("update_confirmed")

    async def _update(self, deps: Deps) -> bool:
        """Return whether the next start will try another program."""
        try:
            pin = await self._find_wanted(deps)
            if pin is None:
                return False
            digest = pin.digests[self._machine]
            await self._fetch.prepare(deps.config.link, pin.version, digest)
        except IdentityRefused:
            raise
        except Problem as problem:
            _log.warning("update_not_possible", code=problem.code, message=problem.message)
            return False
        await retire(deps, f"the runner is updated to {pin.version}")
        self._folders.set_next(digest)
        deps.audit.write("update_begins", version=pin.version, digest=digest)
        return True

    async def _find_wanted(self, deps: Deps) -> ProgramPin | None:
        """Return the program that should run, unless it does or has failed before."""
        document = self._read_document()
        if document is None:
            return None
        pinned = document.program if document.updates == "pinned" else None
        pin = pinned or await self._ask_release(deps)
        digest = "" if pin is None else pin.digests.get(self._machine, "")
        if not digest or self._folders.is_current(digest) or self._folders.has_failed(digest):
            return None
        return pin

    async def _ask_release(self, deps: Deps) -> ProgramPin | None:
        """Return what the control plane offers; None if it offers nothing."""
        try:
            offer = await deps.session.call(self._api.ask_program)
        except RemoteProblem as problem:
            if problem.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        payload = offer.release.encode()
        await deps.trust.verify_detached(
            RELEASE_SIGNED, payload, offer.signature, deps.api.get_keys
        )
        release = ProgramRelease.model_validate_json(payload)
        self._require_progress(deps, release.version)
        return ProgramPin(release.version, {"x86_64": release.x86_64, "aarch64": release.aarch64})

    def _require_progress(self, deps: Deps, version: str) -> None:
        """Raise if a signed release is older than one that was offered before."""
        file = deps.disk.path / _HIGHEST
        highest = file.read_text() if file.exists() else ""
        if _read_version(version) < _read_version(highest):
            raise EnvelopeRefused(f"the release {version} is older than {highest}")
        if version != highest:
            deps.disk.write(file, version.encode())


def _read_version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))
