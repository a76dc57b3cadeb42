import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.identity import KEY
from exclave.runner.doctor.machine import check_isolation
from exclave.runner.jobs.workspace import prepare_workspace
from exclave.runner.processes.cell import Cells, Crowded
from exclave.runner.processes.users import NoSuchUser, RunAs, Users, read_run_as

needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can become others"
)
SPAN = "48200-48201"


@pytest.fixture
def open_path() -> Iterator[Path]:
    """Make a folder that other users get to, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def read_range(capacity: int = 1) -> RunAs:
    found = read_run_as(SPAN, capacity)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "capacity"), [("root", 1), ("no such user", 1), ("0", 1), ("0-5", 1), (SPAN, 3)]
)
def test_a_user_that_cannot_keep_jobs_apart_is_refused(text: str, capacity: int) -> None:
    with pytest.raises(NoSuchUser, match=r"EXCLAVE_RUN_AS"):
        read_run_as(text, capacity)


@needs_root
def test_each_job_gets_a_uid_of_a_range_and_no_other_runner_does(tmp_path: Path) -> None:
    users = Users(read_range(), tmp_path)

    first, second = users.acquire(), users.acquire()
    third = users.acquire()
    with pytest.raises(NoSuchUser, match="another runner"):
        Users(read_range(), tmp_path)
    users.close()

    assert first is not None
    assert second is not None
    assert (first.uid, second.uid, third) == (48_200, 48_201, None)
    assert Users(read_range(), tmp_path).owned == {48_200, 48_201}


@needs_root
def test_the_folder_of_a_job_is_open_to_its_user_only_while_it_runs(tmp_path: Path) -> None:
    cells = Cells(Users(read_range(), tmp_path / "uids"))
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir(mode=0o700)

    with cells.hold(folders[0]) as cell, cells.hold(folders[1]):
        opened = folders[0].stat()
        with pytest.raises(Crowded), cells.hold(folders[2]):
            pass
    closed = folders[0].stat()

    assert cell.user is not None
    assert (opened.st_mode & 0o777, opened.st_gid) == (0o710, cell.user.gid)
    assert closed.st_mode & 0o777 == 0o700


@needs_root
def test_a_link_that_a_job_laid_leads_the_runner_nowhere(open_path: Path) -> None:
    secret = open_path / "secret"
    secret.write_text("of root")
    secret.chmod(0o600)
    workspace = prepare_workspace(open_path, read_range().users[0], keep_free_bytes=0)
    (workspace.work / "link").symlink_to(secret)

    with workspace.touch(), pytest.raises(PermissionError):
        (workspace.work / "link").read_text()
    with workspace.touch(), pytest.raises(PermissionError):
        (workspace.work / "link").write_text("of a job")

    assert secret.read_text() == "of root"


@needs_root
def test_the_doctor_tries_whether_jobs_can_read_the_key(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / KEY).touch(mode=0o644)

    def examine(run_as: str, capacity: int = 2) -> str:
        return check_isolation(
            RunnerConfig(data=data, runner_url="", run_as=run_as, capacity=capacity)
        ).state

    assert (examine(""), examine(SPAN), examine("nobody"), examine("nobody", 1)) == (
        "warn",
        "ok",
        "warn",
        "ok",
    )
    for folder in (data, *data.parents[:4]):
        folder.chmod(0o755)
    assert examine(SPAN) == "fail"
