"""A runner that is root isolates its jobs unless told otherwise; where it cannot, it says why."""

import os
import sys
from pathlib import Path

import pytest

from exclave.main.runner import build_config
from exclave.main.settings import RunnerSettings
from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.identity import IDENTITY, KEY
from exclave.runner.doctor.machine import check_isolation
from exclave.runner.processes.isolation import (
    POOL,
    Isolation,
    claim_users,
    decide_isolation,
    find_obstacle,
    read_chosen,
)
from exclave.runner.processes.users import NoSuchUser, Users

is_root = sys.platform == "linux" and os.geteuid() == 0
needs_root = pytest.mark.skipif(not is_root, reason="only root can become others")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir(mode=0o700)
    return made


def claim(data: Path, claims: Path, capacity: int = 4) -> Users:
    users = claim_users("auto", capacity, data, claims)
    assert users is not None
    return users


def test_without_root_jobs_are_not_isolated_and_the_reason_is_told(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    assert decide_isolation("", data) == Isolation("", "the runner is not root")
    with pytest.raises(NoSuchUser, match="cannot be isolated: the runner is not root"):
        claim_users("auto", 4, data)


@needs_root
def test_a_new_runner_of_root_isolates_its_jobs(data: Path) -> None:
    assert find_obstacle() == ""
    assert decide_isolation("", data) == Isolation("auto")
    config = build_config(RunnerSettings(runner_data=data))
    assert config.run_as == "auto"
    assert str(config.jobs_folder).startswith("/var/lib/exclave/jobs/")


@needs_root
def test_isolation_can_be_turned_off(data: Path) -> None:
    config = build_config(RunnerSettings(runner_data=data, run_as="none"))

    assert (config.run_as, config.jobs_folder) == ("", None)
    assert claim_users(config.run_as, 4, data) is None
    assert config.why_not_isolated == "EXCLAVE_RUN_AS is `none`"


@needs_root
@pytest.mark.parametrize("trace", [IDENTITY, "audit.jsonl"])
def test_a_runner_that_has_worked_without_isolation_goes_on_so_until_told(
    data: Path, trace: str
) -> None:
    (data / trace).touch()

    found = decide_isolation("", data)

    assert found.run_as == ""
    assert "EXCLAVE_RUN_AS=auto" in found.why_not
    assert decide_isolation("auto", data) == Isolation("auto")


@needs_root
def test_chosen_uids_are_unused_kept_and_shared_with_no_other_runner(
    data: Path, tmp_path: Path
) -> None:
    claims, second = tmp_path / "claims", tmp_path / "second"
    first = claim(data, claims)
    other = claim(second, claims)

    assert len(first.owned) == len(other.owned) == 8
    assert not first.owned & other.owned
    assert first.owned | other.owned <= set(POOL)
    first.close()
    third = claim(tmp_path / "third", claims)
    assert not third.owned & first.owned  # a runner that is down keeps its uids
    assert claim(data, claims).owned == first.owned
    assert decide_isolation("", data) == Isolation("auto")


@needs_root
def test_uids_that_somebody_else_uses_by_now_are_replaced(data: Path, tmp_path: Path) -> None:
    claims = tmp_path / "claims"
    before = claim(data, claims)
    before.close()
    (data / "uids").rename(tmp_path / "uids")
    thief = claim(tmp_path / "thief", claims)
    assert thief.owned == before.owned
    (tmp_path / "uids").rename(data / "uids")

    after = claim(data, claims)

    assert not after.owned & thief.owned
    assert read_chosen(data) == f"{min(after.owned)}-{max(after.owned)}"


@needs_root
def test_more_jobs_at_once_get_more_uids(data: Path, tmp_path: Path) -> None:
    small = claim(data, tmp_path / "claims")
    small.close()

    assert len(claim(data, tmp_path / "claims", capacity=20).owned) == 20


@needs_root
@pytest.mark.parametrize("content", ["", "0-7", "rubbish", "61000-60000", "5-999999"])
def test_a_damaged_choice_is_made_again(data: Path, tmp_path: Path, content: str) -> None:
    (data / "uids").write_text(content)

    assert claim(data, tmp_path / "claims").owned <= set(POOL)


@needs_root
def test_the_doctor_tells_which_uids_jobs_have_or_why_none(data: Path, tmp_path: Path) -> None:
    (data / KEY).touch(mode=0o600)

    def examine(run_as: str, why: str = "") -> tuple[str, str]:
        config = RunnerConfig(data, "", run_as=run_as, why_not_isolated=why)
        found = check_isolation(config)
        return found.state, found.message

    assert examine("auto") == ("ok", "jobs will run as uids that the first start chooses")
    claim(data, tmp_path / "claims")
    assert examine("auto") == (
        "ok",
        f"jobs run as {read_chosen(data)}, and cannot read the runner's key",
    )
    state, message = examine("", "the runner is not root")
    assert (state, "the runner is not root" in message) == ("warn", True)
