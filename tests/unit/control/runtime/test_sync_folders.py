"""Folders of syncs: private, removed at the end, and removed later if nobody was left to do it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from exclave.control.runtime.sync_folders import SyncFolders

ANOTHER = """
import sys, time
from pathlib import Path
from exclave.control.runtime.sync_folders import SyncFolders

folder = SyncFolders(Path(sys.argv[1])).make()
(folder.path / "app.tar").write_bytes(b"x")
print(folder.path, flush=True)
time.sleep(600)
"""


def test_a_folder_is_private_and_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder = SyncFolders(tmp_path / "syncs").make()
    (folder.path / "app").mkdir()
    mode = folder.path.stat().st_mode

    folder.remove()

    assert mode & 0o077 == 0
    assert (tmp_path / "syncs").stat().st_mode & 0o077 == 0
    assert list((tmp_path / "syncs").iterdir()) == []


def test_a_folder_in_use_stays(tmp_path: Path) -> None:
    folder = SyncFolders(tmp_path).make()

    assert SyncFolders(tmp_path).remove_stale() == 0
    assert folder.path.is_dir()
    folder.remove()


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", ANOTHER, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as another:
        assert another.stdout is not None
        path = Path(another.stdout.readline().strip())
        while_it_runs = SyncFolders(tmp_path).remove_stale()
        os.kill(another.pid, signal.SIGKILL)

    assert (while_it_runs, path.is_dir()) == (0, True)
    assert SyncFolders(tmp_path).remove_stale() == 1
    assert list(tmp_path.iterdir()) == []


def test_other_things_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()

    assert SyncFolders(tmp_path).remove_stale() == 0
    assert SyncFolders(tmp_path / "missing").remove_stale() == 0
    assert (tmp_path / "notes").is_dir()
