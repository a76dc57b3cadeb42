"""Script jobs with real processes: order, ends, environment, outputs, secrets."""

import json
import os
from pathlib import Path

import pytest

from exclave.runner.executors.noop import NoopExecutor
from exclave.runner.jobs.executor import JobRun
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.logs import Stream
from exclave.wire.specs import NoopSpec, ScriptSpec
from tests.unit.runner.work_kit import (
    NO_UPLINK,
    ExecutionHarness,
    make_dispatch,
    read_spool,
    script,
)

OUT, ERR, SYSTEM = Stream.STDOUT, Stream.STDERR, Stream.SYSTEM


@pytest.fixture
def bench(tmp_path: Path) -> ExecutionHarness:
    return ExecutionHarness(tmp_path)


def steps(*given: dict[str, object], **more: object) -> ScriptSpec:
    named = [{"name": f"step-{at}", **one} for at, one in enumerate(given)]
    return ScriptSpec.model_validate({"steps": named, **more})


async def test_steps_run_in_order_and_the_log_tells_which(bench: ExecutionHarness) -> None:
    outcome = await bench.run(
        steps({"argv": ["echo", "one  two"]}, {"script": "echo three\necho four >&2"})
    )

    assert (outcome.state, outcome.reason, outcome.exit_code) == (
        OutcomeState.SUCCEEDED,
        Reason.COMPLETED,
        0,
    )
    shown = [(one.stream, one.text) for one in read_spool(bench.spool)]
    assert shown[:3] == [(SYSTEM, "▸ step step-0"), (OUT, "one  two"), (SYSTEM, "▸ step step-1")]
    assert sorted(shown[3:]) == [(OUT, "three"), (ERR, "four")]


async def test_the_first_failure_ends_the_job_and_is_told(bench: ExecutionHarness) -> None:
    outcome = await bench.run(steps({"script": "echo a; exit 3"}, {"script": "echo b"}))

    assert (outcome.state, outcome.reason, outcome.exit_code) == (
        OutcomeState.FAILED,
        Reason.EXIT_CODE,
        3,
    )
    assert "step `step-0` ended with exit code 3" in outcome.message
    assert bench.texts() == ["a"]
    assert bench.texts(SYSTEM)[-1] == outcome.message


async def test_a_script_stops_at_its_first_failing_line(bench: ExecutionHarness) -> None:
    outcome = await bench.run(script("false\necho never"))

    assert (outcome.exit_code, bench.texts()) == (1, [])


async def test_scripts_run_in_any_interpreter(bench: ExecutionHarness) -> None:
    spec = steps({"script": "print(sum(range(5)))", "interpreter": ["python3", "-I"]})

    await bench.run(spec.model_copy(update={"env": {"PATH": os.environ["PATH"]}}))

    assert bench.texts() == ["10"]


async def test_a_missing_tool_is_named_with_the_place_that_was_searched(
    bench: ExecutionHarness,
) -> None:
    outcome = await bench.run(steps({"argv": ["no-such-tool", "x"], "env": {"PATH": "/bin"}}))

    assert outcome.reason is Reason.TOOL_MISSING
    assert "`no-such-tool` is not installed on the runner: it is not in PATH (/bin)" in (
        outcome.message
    )


async def test_a_missing_path_is_a_missing_tool_too(bench: ExecutionHarness) -> None:
    assert (await bench.run(steps({"argv": ["./nothing"]}))).reason is Reason.TOOL_MISSING


async def test_what_cannot_be_started_says_why(bench: ExecutionHarness) -> None:
    (bench.folder / "job" / "work").mkdir(parents=True)
    (bench.folder / "job" / "work" / "plain").write_text("echo x")

    outcome = await bench.run(steps({"argv": ["./plain"]}))

    assert outcome.reason is Reason.SPAWN_FAILED
    assert "Permission denied" in outcome.message


async def test_a_command_that_dies_by_a_signal_says_which(bench: ExecutionHarness) -> None:
    outcome = await bench.run(script("kill -SEGV $$"))

    assert (outcome.reason, outcome.exit_code) == (Reason.EXIT_CODE, 139)
    assert "SIGSEGV" in outcome.message


async def test_children_see_nothing_of_the_runner(
    bench: ExecutionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXCLAVE_TOKEN", "xcr_of_the_runner")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the runner")
    read, write = os.pipe()
    os.set_inheritable(write, True)

    await bench.run(
        script("env; pwd; ls /proc/self/fd | tr '\\n' ' '; test ! -t 0; cat", env={"A": "job"})
    )
    os.close(read)
    os.close(write)

    env = dict(line.split("=", 1) for line in bench.texts() if "=" in line)
    folder = bench.folder / "job"
    assert env == {
        "PATH": env["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "PWD": str(folder / "work"),
        "A": "job",
        "EXCLAVE_EXECUTION": bench.folder.name,
        "EXCLAVE_JOB": env["EXCLAVE_JOB"],
        "EXCLAVE_INPUTS": str(folder / "inputs.json"),
        "EXCLAVE_OUTPUTS": str(folder / "outputs-0"),
    }
    assert str(folder / "work") in bench.texts()
    assert bench.texts()[-1].split() == ["0", "1", "2", "3"]


async def test_children_are_less_urgent_than_the_runner(bench: ExecutionHarness) -> None:
    await bench.run(script("nice"))

    assert bench.texts() == [str(min(19, os.nice(0) + 7))]


async def test_a_job_cannot_pass_for_another_execution(bench: ExecutionHarness) -> None:
    await bench.run(script("echo $EXCLAVE_EXECUTION", env={"EXCLAVE_EXECUTION": "exe_other"}))

    assert bench.texts() == [bench.folder.name]


async def test_outputs_of_all_steps_come_together(bench: ExecutionHarness) -> None:
    outcome = await bench.run(
        steps(
            {"script": 'echo "a=1" >> $EXCLAVE_OUTPUTS; echo "b=x" >> $EXCLAVE_OUTPUTS'},
            {"script": """echo '{"b": [2], "c": null}' > $EXCLAVE_OUTPUTS"""},
        )
    )

    assert outcome.outputs == {"a": "1", "b": [2], "c": None}


async def test_wrong_outputs_fail_the_step_with_the_line(bench: ExecutionHarness) -> None:
    outcome = await bench.run(script('printf "a=1\\nnonsense\\n" > $EXCLAVE_OUTPUTS'))

    assert outcome.reason is Reason.OUTPUTS_INVALID
    assert outcome.message.startswith("step `main`: the outputs file, line 2:")


async def test_outputs_cannot_be_a_link_to_a_file_of_the_runner(
    bench: ExecutionHarness, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("key=private")

    outcome = await bench.run(script(f"ln -sf {tmp_path}/key $EXCLAVE_OUTPUTS"))

    assert (outcome.reason, outcome.outputs) == (Reason.OUTPUTS_INVALID, {})


async def test_inputs_and_the_approved_digest_reach_the_job(bench: ExecutionHarness) -> None:
    digest = "sha256:" + "a" * 64

    await bench.run(
        script("cat $EXCLAVE_INPUTS; echo; echo $EXCLAVE_APPROVED_DIGEST"),
        inputs={"plan": {"x": 1}},
        approved_digest=digest,
    )

    assert json.loads(bench.texts()[0]) == {"plan": {"x": 1}}
    assert bench.texts()[1] == digest


async def test_a_secret_reaches_the_job_and_nothing_else(tmp_path: Path) -> None:
    bench = ExecutionHarness(tmp_path, {"db": "p@ss'w\"ord/1+2", "unused": "not-for-this-job"})
    text = """
printf '%s\\n' "$DB"; printf '%s' "$DB" | base64; printf '%s' "$DB" | od -An -tx1 | tr -d ' \\n'; echo
printf '%s\\n' "$DB" | fold -w 1 | while IFS= read -r c; do printf '%s' "$c" >&2; sleep 0.01; done
printf 'conn=postgres://u:%s@host/db\\n' "$DB" > $EXCLAVE_OUTPUTS
exit 0
"""
    outcome = await bench.run(script(text, secrets={"DB": "db"}))

    assert bench.texts() == ["***", "***", "***"]
    assert bench.texts(ERR) == ["***"]
    assert outcome.outputs == {"conn": "postgres://***@host/db"}
    for file in (bench.folder / "log").iterdir():
        assert b"ord/1" not in file.read_bytes()


async def test_a_missing_secret_fails_before_anything_runs(tmp_path: Path) -> None:
    bench = ExecutionHarness(tmp_path, {"db": "x"})

    outcome = await bench.run(script("echo ran", secrets={"DB": "db", "API": "api-key"}))

    assert outcome.reason is Reason.SECRET_MISSING
    assert "`api-key`" in outcome.message
    assert bench.texts() == []


async def test_a_step_that_was_stopped_before_it_began_does_not_run(
    bench: ExecutionHarness,
) -> None:
    bench.stop.request(Reason.CANCELLED, 5)

    outcome = await bench.run(script("echo ran"))

    assert (outcome.state, bench.texts()) == (OutcomeState.CANCELLED, [])


async def test_a_noop_job_succeeds(bench: ExecutionHarness) -> None:
    work = JobRun(make_dispatch(NoopSpec()), bench.folder, NO_UPLINK)

    outcome = await NoopExecutor().run(work, bench.log, bench.stop)

    assert outcome.state is OutcomeState.SUCCEEDED
