"""Archives of apps: hostile ones leave nothing, good ones are kept as they came."""

import io
import os
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from exclave.base.archives import ArchiveProblem
from exclave.base.errors import NotFound
from exclave.control.apps import configs
from exclave.control.apps.sync import SyncWish, sync_app
from exclave.control.deps import Deps
from exclave.control.runtime.sync_folders import SyncFolders
from exclave.domain.identity import QueueId, QueueKind, RunnerId, RunnerIdentity, User
from tests.integration.control.syncing_kit import count_synced, list_archives
from tests.support.apps import in_chunks, make_app, pack, sync, write_app
from tests.support.world import make_org

HOSTILE = ["climbs", "absolute", "link", "hard", "device", "twice", "bomb"]


@pytest.mark.parametrize("kind", [*HOSTILE, "noise", "empty", "cut"])
async def test_hostile_archives_are_refused_and_leave_nothing(
    deps: Deps, user: User, kind: str, tmp_path: Path
) -> None:
    deps = replace(deps, sync_folders=SyncFolders(tmp_path))
    await make_app(deps, user)
    if kind == "cut":
        data = pack(write_app(tmp_path))[:9000]
        shutil.rmtree(tmp_path / "demo")
    else:
        data = {"noise": b"\x1f\x8b" + bytes(range(256)) * 9, "empty": b""}.get(kind, b"")
        data = data or (b"" if kind == "empty" else make_hostile(kind))

    with pytest.raises(ArchiveProblem):
        await sync_app(deps, user, "demo", in_chunks(data), SyncWish())

    assert set((await count_synced(deps)).values()) == {0}
    assert await list_archives(deps) == []
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a coroutine has no Path


def make_hostile(kind: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("metadata.toml")
        match kind:
            case "climbs":
                info = tarfile.TarInfo("../../evil")
            case "absolute":
                info = tarfile.TarInfo("/tmp/evil")  # noqa: S108 - it is never written
            case "link":
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            case "hard":
                info.type, info.linkname = tarfile.LNKTYPE, "../x"
            case "device":
                info.type = tarfile.CHRTYPE
            case "twice":
                tar.addfile(tarfile.TarInfo("metadata.toml"))
            case _:
                info.size = 1 << 40
                out.write(info.tobuf())
                return out.getvalue()
        tar.addfile(info)
    return out.getvalue()


async def test_an_upload_that_breaks_off_leaves_nothing(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    deps = replace(deps, sync_folders=SyncFolders(tmp_path))
    await make_app(deps, user)

    async def break_off() -> Any:
        yield b"x" * 4096
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await sync_app(deps, user, "demo", break_off(), SyncWish())

    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a coroutine has no Path


async def test_build_runners_of_the_org_get_the_archive_as_it_was_uploaded(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    directory = write_app(tmp_path)
    reply = await sync(deps, user, directory)
    assert reply.config is not None
    config = reply.config.id
    other = await make_org(deps, "other")

    def who(org: Any, kind: QueueKind) -> RunnerIdentity:
        return RunnerIdentity(org, RunnerId("run_x"), QueueId("bld_x"), kind, "x")

    digest, pieces = await configs.open_archive(deps, who(user.org, QueueKind.BUILD), config)
    assert b"".join([piece async for piece in pieces]) == pack(directory)
    assert digest == reply.config.archive_digest
    for stranger in (who(user.org, QueueKind.INSTALL), who(other.org, QueueKind.BUILD)):
        with pytest.raises(NotFound):
            await configs.open_archive(deps, stranger, config)
