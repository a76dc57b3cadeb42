import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exclave.runner import data_folder as disk_module
from exclave.runner.data_folder import DataFolder, DataFolderBroken, DataFolderInUse, remove_tree


def test_a_second_runner_on_the_folder_is_told_so(tmp_path: Path) -> None:
    first = DataFolder(tmp_path / "data")

    with pytest.raises(DataFolderInUse):
        DataFolder(tmp_path / "data")
    first.close()

    DataFolder(tmp_path / "data").close()


def test_the_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    program = (
        "import sys, os, pathlib; from exclave.runner.data_folder import DataFolder;"
        "DataFolder(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DataFolderInUse):
            DataFolder(tmp_path / "data")
        holder.kill()

    DataFolder(tmp_path / "data").close()


def test_each_start_raises_the_boot_counter(tmp_path: Path) -> None:
    boots = []
    for _ in range(3):
        disk = DataFolder(tmp_path / "data")
        boots.append(disk.raise_boot())
        disk.close()

    assert boots == [1, 2, 3]


def test_a_broken_boot_counter_is_not_guessed(tmp_path: Path) -> None:
    disk = DataFolder(tmp_path / "data")
    (disk.path / "boot").write_text("many")

    with pytest.raises(DataFolderBroken):
        disk.raise_boot()


def test_the_folder_is_private_even_if_it_was_open(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)

    disk = DataFolder(tmp_path / "data")

    assert disk.path.stat().st_mode & 0o777 == 0o700


def test_an_execution_is_made_once(tmp_path: Path) -> None:
    disk = DataFolder(tmp_path / "data")

    assert disk.make_execution("exe_1") is not None
    assert disk.make_execution("exe_1") is None


def test_a_full_disk_costs_the_reserve_before_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = DataFolder(tmp_path / "data", reserve_bytes=4096)
    real = disk_module.write_durably

    def write(file: Path, data: bytes) -> None:
        if (disk.path / "reserve").exists():
            raise OSError(errno.ENOSPC, "no space")
        real(file, data)

    monkeypatch.setattr(disk_module, "write_durably", write)
    disk.write(disk.outbox / "result.json", b"{}")

    assert (disk.outbox / "result.json").read_bytes() == b"{}"


async def test_a_tree_is_removed_whatever_work_did_to_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("keep")
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "file").write_text("x")
    (tree / "a" / "link").symlink_to(outside)
    (tree / "a" / "dangling").symlink_to("nowhere")
    os.mkfifo(tree / "a" / "pipe")
    (tree / "a" / "b").chmod(0)
    pauses = []

    async def pause() -> None:
        pauses.append(1)

    for number in range(500):
        (tree / f"f{number}").touch()
    await remove_tree(tree, pause)

    assert not tree.exists()
    assert (outside / "keep").exists()
    assert len(pauses) == 2
