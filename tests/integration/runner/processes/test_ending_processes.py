"""However a command behaves, it ends in time and leaves nothing behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from exclave.runner.processes import leftovers, procfs
from exclave.runner.processes.child import Command, kill_leftovers, start_child
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.logs import Stream
from exclave.wire.runner import Outcome
from tests.support.processes import list_zombies
from tests.unit.runner.work_kit import CLOCK, EXECUTION, ExecutionHarness, script

pytestmark = pytest.mark.skipif(not procfs.is_supported(), reason="needs /proc")

SYSTEM = Stream.SYSTEM
STUBBORN = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done"


@pytest.fixture
def bench(tmp_path: Path) -> ExecutionHarness:
    return ExecutionHarness(tmp_path)


async def wait_for_line(bench: ExecutionHarness, text: str) -> None:
    async with asyncio.timeout(10):
        while text.encode() not in bench.spool.read(0, 1 << 20):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)


async def run_and_stop(
    bench: ExecutionHarness, text: str, *, reason: Reason = Reason.CANCELLED, grace_s: float = 0.6
) -> tuple[Outcome, float]:
    running = asyncio.create_task(bench.run(script(text)))
    await wait_for_line(bench, "ready")
    began = CLOCK.monotonic()
    bench.stop.request(reason, grace_s)
    outcome = await running
    return outcome, CLOCK.monotonic() - began


def assert_nothing_lives() -> None:
    assert procfs.list_marked(EXECUTION) == []


async def test_a_polite_command_is_stopped_by_the_first_signal(bench: ExecutionHarness) -> None:
    text = "trap 'echo cleaned up; exit 0' INT; echo ready; while :; do sleep 0.05; done"

    outcome, took = await run_and_stop(bench, text, grace_s=10)

    assert (outcome.state, outcome.reason) == (OutcomeState.CANCELLED, Reason.CANCELLED)
    assert bench.texts() == ["ready", "cleaned up"]
    assert took < 3
    assert_nothing_lives()


async def test_a_command_that_ignores_the_first_signal_gets_the_second_in_time(
    bench: ExecutionHarness,
) -> None:
    text = "trap '' INT; trap 'echo term; exit 0' TERM; echo ready; while :; do sleep 0.05; done"

    _, took = await run_and_stop(bench, text, grace_s=0.9)

    assert bench.texts() == ["ready", "term"]
    assert 0.5 < took < 2


async def test_a_command_that_ignores_every_signal_is_killed_at_the_end_of_the_grace(
    bench: ExecutionHarness,
) -> None:
    outcome, took = await run_and_stop(bench, STUBBORN)

    assert outcome.state is OutcomeState.CANCELLED
    assert 0.6 <= took < 2.6
    assert_nothing_lives()


async def test_the_dead_man_interrupts_instead_of_cancelling(bench: ExecutionHarness) -> None:
    outcome, _ = await run_and_stop(bench, STUBBORN, reason=Reason.DEADMAN, grace_s=0.1)

    assert (outcome.state, outcome.reason) == (OutcomeState.INTERRUPTED, Reason.DEADMAN)


async def test_a_stopped_grandchild_in_its_own_session_is_killed_too(
    bench: ExecutionHarness,
) -> None:
    text = f'setsid sh -c "{STUBBORN}" & setsid -f sleep 300; {STUBBORN}'

    _, took = await run_and_stop(bench, text)

    assert took < 2.6
    assert_nothing_lives()


async def test_a_stopped_process_is_killed_although_it_cannot_listen(
    bench: ExecutionHarness,
) -> None:
    _, took = await run_and_stop(bench, "echo ready; kill -STOP $$; sleep 100")

    assert took < 2.6
    assert_nothing_lives()


async def test_what_a_successful_command_leaves_behind_is_killed(bench: ExecutionHarness) -> None:
    text = "setsid -f sleep 300; sleep 300 >/dev/null 2>&1 & echo done"
    began = CLOCK.monotonic()

    outcome = await bench.run(script(text))

    assert (outcome.state, bench.texts()) == (OutcomeState.SUCCEEDED, ["done"])
    assert CLOCK.monotonic() - began < 2.5
    assert_nothing_lives()


async def test_a_hidden_grandchild_that_holds_the_pipe_does_not_hold_up_the_job(
    bench: ExecutionHarness, tmp_path: Path
) -> None:
    text = f"env -i setsid -f sh -c 'echo $$ > {tmp_path}/pid; exec sleep 300'; echo done"
    began = CLOCK.monotonic()

    outcome = await bench.run(script(text))

    assert (outcome.state, bench.texts()) == (OutcomeState.SUCCEEDED, ["done"])
    assert CLOCK.monotonic() - began < 4
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


async def test_output_that_comes_just_after_the_end_is_not_lost(bench: ExecutionHarness) -> None:
    await bench.run(script("(sleep 0.1; echo late) & echo early"))

    assert bench.texts() == ["early", "late"]


async def test_a_step_that_takes_too_long_fails_with_timeout(bench: ExecutionHarness) -> None:
    spec = script("echo ready; sleep 300")
    step = spec.steps[0].model_copy(update={"timeout_s": 0.3})

    outcome = await bench.run(spec.model_copy(update={"steps": [step]}))

    assert (outcome.state, outcome.reason) == (OutcomeState.FAILED, Reason.TIMEOUT)
    assert "step `main` was stopped by the step's timeout of 0.3 s" in outcome.message
    assert "stopping the command: timeout" in bench.texts(SYSTEM)
    assert_nothing_lives()


async def test_the_timeout_of_the_job_counts_for_all_steps_together(
    bench: ExecutionHarness,
) -> None:
    spec = script("sleep 0.2", timeout_s=0.3)

    outcome = await bench.run(spec.model_copy(update={"steps": [spec.steps[0]] * 5}))

    assert outcome.reason is Reason.TIMEOUT
    assert "the job's timeout of 0.3 s" in outcome.message


async def test_a_cancel_hurries_a_command_that_is_slow_after_its_timeout(
    bench: ExecutionHarness,
) -> None:
    running = asyncio.create_task(bench.run(script(STUBBORN, timeout_s=0.3), grace_s=100))
    await wait_for_line(bench, "stopping the command: timeout")
    began = CLOCK.monotonic()

    bench.stop.request(Reason.CANCELLED, 0.3)
    outcome = await running

    assert outcome.state is OutcomeState.CANCELLED
    assert CLOCK.monotonic() - began < 2.3


async def test_a_cancelled_executor_leaves_no_process(bench: ExecutionHarness) -> None:
    running = asyncio.create_task(bench.run(script(STUBBORN)))
    await wait_for_line(bench, "ready")

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert_nothing_lives()


def count_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def start_process(*argv: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, env=env, start_new_session=True)


async def test_many_ends_leave_neither_zombies_nor_open_files(bench: ExecutionHarness) -> None:
    await bench.run(script("true"))
    before = count_files()

    spec = script("true")
    await bench.run(spec.model_copy(update={"steps": [spec.steps[0]] * 30}))

    assert count_files() <= before
    assert list_zombies() == []


RUNNER = """
import asyncio, os, sys
from pathlib import Path
from tests.unit.runner import work_kit
async def main():
    work_kit.EXECUTION = sys.argv[3]
    await work_kit.ExecutionHarness(Path(sys.argv[1])).run(work_kit.script(sys.argv[2]))
asyncio.run(main())
"""


async def kill_runner_in_mid_job(folder: Path, text: str) -> Path:
    """Run a job in another process and kill that with -9 once the job is ready."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    runner = start_process(sys.executable, "-c", RUNNER, str(folder), text, EXECUTION, env=env)
    signs = (folder / EXECUTION / "job" / "work" / "ready", folder / EXECUTION / "process.json")
    async with asyncio.timeout(15):
        while not all(sign.exists() for sign in signs):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)
    runner.kill()
    runner.wait()
    return folder / EXECUTION


async def test_a_restarted_runner_kills_what_the_killed_one_left(tmp_path: Path) -> None:
    text = (
        "trap '' INT TERM HUP PIPE; setsid -f sleep 300; touch ready; while :; do sleep 0.05; done"
    )
    folder = await kill_runner_in_mid_job(tmp_path, text)
    assert len(procfs.list_marked(EXECUTION)) >= 2

    assert await kill_leftovers(folder, CLOCK)

    assert_nothing_lives()
    assert await kill_leftovers(folder, CLOCK)


async def test_leftovers_without_the_marker_are_found_by_their_group(tmp_path: Path) -> None:
    text = "exec env -i sh -c 'trap \"\" PIPE; touch ready; while :; do sleep 0.05; done'"
    folder = await kill_runner_in_mid_job(tmp_path, text)
    record = leftovers.read_process(folder)
    assert record is not None
    assert procfs.list_group(record.group)

    assert await kill_leftovers(folder, CLOCK)

    assert procfs.list_group(record.group) == []


async def test_a_process_number_that_was_taken_over_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / EXECUTION
    folder.mkdir()
    innocent = start_process("sleep", "300")
    leftovers.record_process(folder, EXECUTION, innocent.pid)
    record = json.loads((folder / "process.json").read_text())
    record["started"] -= 100
    (folder / "process.json").write_text(json.dumps(record))

    assert await kill_leftovers(folder, CLOCK)

    assert innocent.poll() is None
    innocent.kill()
    innocent.wait()


async def test_the_process_is_on_record_before_its_output_is_read(bench: ExecutionHarness) -> None:
    command = Command(("sh", "-c", "echo hello"), {"PATH": os.environ["PATH"]}, bench.folder)

    child = await start_child(
        command, folder=bench.folder, execution_id=EXECUTION, log=bench.log, clock=CLOCK
    )
    await child.wait_exit()
    code = await child.close()

    record = leftovers.read_process(bench.folder)
    assert record is not None
    assert (code, record.execution_id, record.boot) == (0, EXECUTION, procfs.read_boot())
