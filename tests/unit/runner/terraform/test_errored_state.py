"""A state that Terraform left is read as the job's user, whatever else the job put in its place."""

import os
from pathlib import Path

import pytest

from exclave.runner.jobs.workspace import ROOM
from exclave.runner.terraform.errored_state import ERRORED, _read_left
from exclave.runner.terraform.module import MODULE

OTHER = 61999


@pytest.fixture(params=["own", "other"])
def module(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The module's folder in an execution that is over, of the runner's user or of another."""
    made = tmp_path / MODULE
    made.mkdir(parents=True)
    if request.param == "other":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder to another user")
        for folder in (made, made.parent, made.parent.parent):
            os.chown(folder, OTHER, OTHER)
            folder.chmod(0o700)
    tmp_path.chmod(0o700)
    return made


def own(file: Path) -> None:
    owner = file.parent.stat()
    os.chown(file, owner.st_uid, owner.st_gid, follow_symlinks=False)


def test_what_is_there_is_read(module: Path, tmp_path: Path) -> None:
    (module / ERRORED).write_bytes(b"{}")
    (module / ERRORED).chmod(0o600)
    own(module / ERRORED)

    assert _read_left(tmp_path / ROOM) == b"{}"


def test_nothing_there_is_nothing(module: Path, tmp_path: Path) -> None:
    assert module.is_dir()
    assert _read_left(tmp_path / ROOM) is None


def test_a_link_or_a_pipe_is_not_followed(module: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the runner")
    (module / ERRORED).symlink_to(tmp_path / "secret")
    assert _read_left(tmp_path / ROOM) is None

    (module / ERRORED).unlink()
    os.mkfifo(module / ERRORED)
    own(module / ERRORED)
    assert _read_left(tmp_path / ROOM) is None


def test_a_folder_that_is_a_link_leads_nowhere_of_the_runner(module: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    (hidden / ERRORED).write_text("of the runner")
    module.rmdir()
    module.symlink_to(hidden)
    own(module)

    owned_by_runner = module.parent.stat().st_uid == os.geteuid()
    assert (_read_left(tmp_path / ROOM) is None) is not owned_by_runner
