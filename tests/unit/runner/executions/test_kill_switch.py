"""The customer's kill switch: work ends in time, none is taken, and everybody is told."""

from datetime import UTC, datetime
from pathlib import Path

from exclave.runner.control_plane.identity import StrangeKeys
from exclave.runner.executions.kill_switch import disable_runner, enable_runner, is_disabled
from exclave.runner.loops.kill_switch_watch import watch_switch
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Stats
from tests.unit.runner.harness import RunnerHarness, expect, run_scenario


def throw(house: RunnerHarness) -> None:
    disable_runner(house.config.data, house.clock.now())


def watch(house: RunnerHarness) -> None:
    house.duties = [watch_switch]


def test_the_switch_outlives_restarts_and_counts_once(tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)

    assert disable_runner(tmp_path / "new", at) is True
    assert disable_runner(tmp_path / "new", at) is False
    assert is_disabled(tmp_path / "new")
    assert (tmp_path / "new" / "disabled").stat().st_mode & 0o777 == 0o600
    assert enable_runner(tmp_path / "new") is True
    assert enable_runner(tmp_path / "new") is False
    assert not is_disabled(tmp_path / "new")


def test_running_work_is_cancelled_at_once_and_the_heartbeat_says_why(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        watch(house)
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(5)
        thrown_at = house.clock.monotonic()
        throw(house)
        await house.clock.sleep(5)

        expect(house.control.result_of(name), OutcomeState.CANCELLED, Reason.DISABLED)
        assert house.executor.stopped[name][1] - thrown_at <= 2
        told = [at for at, renewal in house.control.renewals if renewal.stats.disabled]
        assert told[0] - thrown_at <= 2
        await house.stop(runner, task)

    house = run_scenario(tmp_path, scenario, lasts_s=1000)

    assert "disabled" in house.audit_events()


def test_nothing_new_is_taken_until_it_is_enabled(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        watch(house)
        throw(house)
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(100)

        assert house.executor.runs == {}
        assert {poll.free for poll in house.control.polls} == {0}
        enabled_at = house.clock.monotonic()
        enable_runner(house.config.data)
        await house.clock.sleep(10)

        expect(house.control.result_of(name), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        assert house.executor.began[name] - enabled_at <= 3
        assert house.control.renewals[-1][1].stats.disabled is False
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_an_offer_that_arrives_after_the_switch_is_left_alone(tmp_path: Path) -> None:
    """A poll with free slots was already on its way when the switch was thrown."""

    async def scenario(house: RunnerHarness) -> None:
        watch(house)
        runner, task = house.start()
        await house.clock.sleep(2)
        throw(house)
        name = house.control.add_job()
        await house.clock.sleep(60)

        assert house.executor.runs == {}
        assert house.control.result_of(name) is None
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_work_that_does_not_end_is_killed_within_two_minutes(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        watch(house)
        house.executor.stops_in_s = 10_000
        runner, task = house.start()
        name = house.control.add_job(mutating=True)
        await house.clock.sleep(5)
        throw(house)
        await house.clock.sleep(119)

        assert house.executor.stopped[name][0] is Reason.DISABLED
        ended = house.control.result_of(name) is not None
        assert ended or name in house.killed
        runner.request_stop()
        await house.crash(task)

    run_scenario(tmp_path, scenario, lasts_s=100_000)


def test_a_runner_without_the_flag_is_understood() -> None:
    assert Stats.model_validate({"load": 1.0}).disabled is False


def test_pinned_keys_are_checked_at_enrolment(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.pinned = {"k1": "A" * 43}
        _, task = house.start()
        await house.clock.sleep(5)

        assert isinstance(task.exception(), StrangeKeys)
        assert not (house.config.data / "identity.json").exists()

    run_scenario(tmp_path, scenario)


def test_the_right_pinned_keys_and_what_they_vouch_for_are_trusted(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.pinned = {key.kid: key.public_key for key in house.control.keys}
        house.control.rotate_key()
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(5)

        expect(house.control.result_of(name), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)
