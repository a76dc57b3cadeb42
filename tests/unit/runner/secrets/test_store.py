"""Secrets of a Stack: kept in a private file, generated, never told."""

import json
import re
from pathlib import Path

import pytest

from exclave.base.ids import SeededRandomness, SystemRandomness
from exclave.base.secrets import Secret
from exclave.runner.executors.secrets import SecretsExecutor
from exclave.runner.jobs.executor import JobRun, StopRequest
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.store import FileSecrets, generate_secret
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Dispatch, Outcome
from exclave.wire.specs import NoopSpec, SecretsSpec, WantedSecret
from tests.unit.runner.harness import FakeWriter
from tests.unit.runner.work_kit import NO_UPLINK, make_dispatch


async def test_secrets_are_kept_in_a_file_for_the_owner_alone(tmp_path: Path) -> None:
    store = FileSecrets(tmp_path / "secrets.json")

    assert await store.list_names() == frozenset()
    await store.put("db", Secret("one"))
    await store.put("db", Secret("two"))

    assert (tmp_path / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert await store.list_names() == {"db"}
    assert (await store.fetch(["db"]))["db"].reveal() == "two"


async def test_what_is_there_is_never_replaced_by_a_made_up_value(tmp_path: Path) -> None:
    store = FileSecrets(tmp_path / "secrets.json")

    assert await store.put_missing("db", Secret("mine")) is True
    assert await store.put_missing("db", Secret("made up")) is False
    assert (await store.fetch(["db"]))["db"].reveal() == "mine"


async def test_a_missing_secret_names_the_command_that_gives_it(tmp_path: Path) -> None:
    store = FileSecrets(tmp_path / "secrets.json", lambda name: f"run `set {name}`")
    await store.put("other", Secret("x"))

    with pytest.raises(WorkFailed) as caught:
        await store.fetch(["db"])

    assert caught.value.reason is Reason.SECRET_MISSING
    assert "run `set db`" in caught.value.message


async def test_a_broken_file_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "secrets.json"
    file.write_text("[]")
    file.chmod(0o600)

    with pytest.raises(WorkFailed):
        await FileSecrets(file).put("db", Secret("x"))

    assert file.read_text() == "[]"


def test_generated_secrets_are_63_letters_and_digits_and_differ() -> None:
    first, second = (generate_secret(SystemRandomness()).reveal() for _ in range(2))

    assert re.fullmatch(r"[A-Za-z0-9]{63}", first)
    assert first != second


async def run(tmp_path: Path, *wanted: WantedSecret) -> tuple[Outcome, FakeWriter]:
    store = FileSecrets(tmp_path / "secrets.json")
    executor = SecretsExecutor(store, SeededRandomness(1), lambda name: f"run `set {name}`")
    log = FakeWriter()
    work = JobRun(make_secrets_dispatch(*wanted), tmp_path, NO_UPLINK)
    return await executor.run(work, log, StopRequest()), log


def make_secrets_dispatch(*wanted: WantedSecret) -> Dispatch:
    return make_dispatch(NoopSpec()).model_copy(update={"spec": SecretsSpec(secrets=list(wanted))})


async def test_a_job_tells_which_secrets_are_there_but_no_value(tmp_path: Path) -> None:
    store = FileSecrets(tmp_path / "secrets.json")
    await store.put("given", Secret("hunter2hunter2hunter2"))

    outcome, log = await run(
        tmp_path,
        WantedSecret(name="given", required=True),
        WantedSecret(name="made", auto_generate=True),
        WantedSecret(name="usual", default="standard"),
        WantedSecret(name="free"),
    )

    assert outcome.state is OutcomeState.SUCCEEDED
    assert outcome.outputs == {
        "secrets": {
            "given": {"exists": True, "length": 32},
            "made": {"exists": True, "length": 64},
            "usual": {"exists": True, "length": 16},
            "free": {"exists": False, "length": 0},
        }
    }
    kept = json.loads((tmp_path / "secrets.json").read_text())
    assert len(kept["made"]) == 63
    told = outcome.model_dump_json() + "\n".join(log.lines)
    assert not [value for value in kept.values() if value in told]


async def test_all_missing_required_secrets_are_named_with_the_commands(tmp_path: Path) -> None:
    outcome, _ = await run(
        tmp_path, WantedSecret(name="a", required=True), WantedSecret(name="b", required=True)
    )

    assert (outcome.state, outcome.reason) == (OutcomeState.FAILED, Reason.SECRET_MISSING)
    assert "run `set a`" in outcome.message
    assert "run `set b`" in outcome.message


async def test_another_kind_of_job_and_a_stop_are_refused(tmp_path: Path) -> None:
    executor = SecretsExecutor(FileSecrets(None), SeededRandomness(1), str)
    stop = StopRequest()
    stop.request(Reason.CANCELLED, 1.0)

    other = await executor.run(
        JobRun(make_dispatch(NoopSpec()), tmp_path, NO_UPLINK), FakeWriter(), StopRequest()
    )
    stopped = await executor.run(
        JobRun(make_secrets_dispatch(), tmp_path, NO_UPLINK), FakeWriter(), stop
    )

    assert other.reason is Reason.KIND_UNSUPPORTED
    assert stopped.state is OutcomeState.CANCELLED
