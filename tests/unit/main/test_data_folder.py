"""Files of the control plane are for its own user, also those that an older version made."""

import os
import stat
from pathlib import Path

import pytest

from exclave.base.errors import InvalidInput
from exclave.main.composition import build_deps
from exclave.main.data_folder import prepare_data_folder
from exclave.main.settings import ServerSettings
from exclave.storage.backup import read_backup, write_backup


def read_mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def _usual_umask() -> object:
    before = os.umask(0o022)
    yield
    os.umask(before)


def list_open(folder: Path) -> list[str]:
    """List the files that others could read."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and read_mode(path) & 0o077]


async def test_all_files_of_a_control_plane_and_its_backups_are_private(tmp_path: Path) -> None:
    data, copy, again = tmp_path / "data", tmp_path / "copy", tmp_path / "again"
    data.mkdir(mode=0o755)
    deps = build_deps(ServerSettings(data=data))
    try:
        await deps.blobs.put("a/b", b"x")
        write_backup(data, copy)
    finally:
        deps.db.close()
        await deps.blobs.close()
        await deps.workers.close()
    read_backup(copy, again)

    assert (data / "exclave.db").exists()
    assert [list_open(folder) for folder in (data, copy, again)] == [[], [], []]
    assert [read_mode(folder) for folder in (data, copy, again)] == [0o700, 0o700, 0o700]


async def test_files_that_others_could_read_are_taken_from_them(tmp_path: Path) -> None:
    settings = ServerSettings(data=tmp_path / "data")
    for _ in range(2):
        deps = build_deps(settings)
        deps.db.close()
        await deps.blobs.close()
        await deps.workers.close()
        for name in ("exclave.db", "seal.key"):
            (settings.data / name).chmod(0o644)
        settings.data.chmod(0o755)

    build_deps(settings).db.close()

    assert list_open(settings.data) == []
    assert read_mode(settings.data) == 0o700


def test_a_folder_of_others_is_not_taken_from_them(tmp_path: Path) -> None:
    (tmp_path / "somebody's file").touch()
    tmp_path.chmod(0o755)

    with pytest.raises(InvalidInput, match="everybody on this machine"):
        prepare_data_folder(tmp_path)

    assert read_mode(tmp_path) == 0o755
