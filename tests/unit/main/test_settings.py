"""Settings from the environment."""

import pytest

from exclave.base.errors import InvalidInput
from exclave.domain.timings import Timings
from exclave.main.environment import read_settings, read_timings
from exclave.main.settings import RunnerSettings


def test_durations_and_attempts_are_read_as_numbers() -> None:
    env = {"EXCLAVE_POLL_HOLD_S": "20", "EXCLAVE_MAX_ATTEMPTS": "5", "EXCLAVE_RENEW_S": ""}

    timings = read_timings(env)

    assert timings == Timings(poll_hold_s=20.0, max_attempts=5)


@pytest.mark.parametrize(
    ("name", "text"), [("POLL_HOLD_S", "soon"), ("MAX_ATTEMPTS", "2.5"), ("MAX_ATTEMPTS", "x")]
)
def test_what_is_no_number_is_named(name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=f"EXCLAVE_{name}: `{text}` is not a number"):
        read_timings({f"EXCLAVE_{name}": text})


def test_a_given_value_takes_precedence_and_a_wrong_one_is_refused() -> None:
    env = {"EXCLAVE_RUNNER_NAME": "from-env"}

    assert read_settings(RunnerSettings, env, runner_name="given").runner_name == "given"
    assert read_settings(RunnerSettings, env, runner_name=None).runner_name == "from-env"
    with pytest.raises(InvalidInput):
        read_settings(RunnerSettings, env, runner_name=3)


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:1338", "http://localhost:1338"])
def test_tests_stand_in_for_the_metadata_server_on_their_own_machine(url: str) -> None:
    env = {"EXCLAVE_METADATA_URL": url}

    assert read_settings(RunnerSettings, env).metadata_url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254",
        "http://metadata.google.internal",
        "http://127.0.0.1@169.254.169.254",
        "http://127.0.0.1.example",
        "127.0.0.1:1338",
        "http://[::1",
    ],
)
def test_no_other_address_switches_the_test_of_the_metadata_off(url: str) -> None:
    with pytest.raises(InvalidInput, match="EXCLAVE_METADATA_URL"):
        read_settings(RunnerSettings, {"EXCLAVE_METADATA_URL": url})
