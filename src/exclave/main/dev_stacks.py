"""Stacks on the developer's machine: one for each install created with `--here`."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.client.pages import iterate
from exclave.control.installs.installs import list_installs
from exclave.control.stacks.stacks import make_document
from exclave.domain.identity import InstallId, User
from exclave.main.children import clean_environment, run_child
from exclave.main.server import Running
from exclave.main.stack import build_program_argv
from exclave.runner.data_folder import remove_tree
from exclave.runner.stack.folder import StackFolder
from exclave.wire.installs import InstallReply
from exclave.wire.model import Page

log = Log("dev")

_GONE = frozenset({"deprovisioned"})
"""States of an install that needs no runner any more."""
_LOOK_EVERY_S = 1.0
_RESTART_S = 2.0
_PAGE = 200


class DevStacks:
    """Runs, restarts and removes the Stacks of this machine, as customers do on theirs."""

    def __init__(
        self, data: Path, running: Running, user: User, options: Sequence[str] = ()
    ) -> None:
        self._root = data.resolve() / "stacks"
        self._running = running
        self._user = user
        self._options = options
        self._kept: dict[str, asyncio.Task[None]] = {}
        self._stuck: set[str] = set()
        """Stacks that could not be removed; the next start tries again."""

    async def run(self) -> None:
        """Follow the installs until cancelled, then stop all Stacks; the next start finds them."""
        try:
            with self._running.deps.hub.watch("installs") as watch:
                while True:
                    await self._look()
                    await watch.wait(_LOOK_EVERY_S)
        finally:
            for task in self._kept.values():
                task.cancel()
            await asyncio.gather(*self._kept.values(), return_exceptions=True)

    async def _look(self) -> None:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        wanted = await self._list_here()
        for install in wanted - self._kept.keys():
            self._kept[install] = asyncio.create_task(self._keep(install))
        present = {folder.name for folder in self._root.iterdir() if folder.is_dir()}
        for install in (present | self._kept.keys()) - wanted - self._stuck:
            await self._remove(install)

    async def _list_here(self) -> set[str]:
        deps, user = self._running.deps, self._user

        async def fetch(cursor: str | None, limit: int) -> Page[InstallReply]:
            return await list_installs(deps, user, cursor or "", limit)

        installs = [install async for install in iterate(fetch)]
        return {install.id for install in installs if install.here and install.state not in _GONE}

    async def _keep(self, install: str) -> None:
        """Keep the Stack of one install running, as an init system would."""
        folder = StackFolder(self._root / install)
        folder.prepare()
        while True:
            try:
                await self._prepare(folder, install)
            except Problem as problem:
                log.warning("stack_not_made", install=install, message=problem.message)
            else:
                place = ("--foreground", "--folder", str(folder.path))
                words = build_program_argv("up", *place, *self._options)
                code = await run_child(words, self._root / f"{install}.log", clean_environment())
                log.warning("stack_exited", install=install, code=code)
            await asyncio.sleep(_RESTART_S)

    async def _prepare(self, folder: StackFolder, install: str) -> None:
        """Create the Stack, or update the URL of one from an earlier start."""
        if folder.document.exists() and not folder.ended.exists():
            document = folder.read_document()
            moved = document.model_copy(update={"runner_url": self._running.runner_url})
            folder.write_document(moved)
            return
        document = await make_document(self._running.deps, self._user, InstallId(install))
        folder.write_json(folder.fresh, document.model_dump(mode="json"))

    async def _remove(self, install: str) -> None:
        """Stop and uninstall a Stack whose install is gone."""
        task = self._kept.pop(install, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        folder = StackFolder(self._root / install)
        output = self._root / f"{install}.log"
        if not folder.document.exists():
            await remove_tree(folder.path, lambda: asyncio.sleep(0))
            output.unlink(missing_ok=True)
            return
        words = build_program_argv("uninstall", "--yes", "--folder", str(folder.path))
        code = await run_child(words, output, clean_environment())
        if code == 0:
            output.unlink(missing_ok=True)
        else:
            self._stuck.add(install)
            log.warning("stack_not_removed", install=install, code=code, log=str(output))
