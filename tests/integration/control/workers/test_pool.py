"""Worker processes, for real."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from exclave.base.errors import NotFound, Unavailable
from exclave.control.runtime.request_slots import Busy
from exclave.control.workers.pool import TookTooLong, TookTooMuch, WorkerDied, WorkerProcesses
from exclave.template.problems import TemplateProblem
from tests.integration.control.workers import workers_kit as kit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are Linux's")
ENOUGH_S = 60.0


@pytest.fixture
async def workers() -> AsyncIterator[WorkerProcesses]:
    made = WorkerProcesses(2, waiting=3)
    yield made
    await made.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - another process makes it true
            await asyncio.sleep(0.01)


async def read_pid(file: Path) -> int:
    await until(lambda: file.exists() and bool(file.read_text()))
    return int(file.read_text())  # noqa: ASYNC240 - a test may block


async def fails(call: Awaitable[object]) -> BaseException | None:
    (outcome,) = await asyncio.gather(call, return_exceptions=True)
    return outcome if isinstance(outcome, BaseException) else None


async def test_a_call_runs_in_a_process_that_is_kept(workers: WorkerProcesses) -> None:
    first = await workers.run("a", kit.tell_pid, seconds=ENOUGH_S)
    second = await workers.run("b", kit.tell_pid, seconds=ENOUGH_S)

    assert first == second != os.getpid()
    assert await workers.run("a", kit.add, 2, 3, seconds=ENOUGH_S) == 5


async def test_work_past_its_time_is_ended_and_the_next_call_works(
    workers: WorkerProcesses, tmp_path: Path
) -> None:
    started = tmp_path / "pid"

    with pytest.raises(TookTooLong):
        await workers.run("a", kit.burn, str(started), seconds=1.0)

    assert not is_alive(int(started.read_text()))
    assert await workers.run("a", kit.add, 1, 1, seconds=ENOUGH_S) == 2
    assert workers.tally.kills == 1


async def test_work_that_only_waits_is_ended_too(workers: WorkerProcesses) -> None:
    with pytest.raises(TookTooLong):
        await workers.run("a", kit.sleep, 60.0, seconds=0.2)

    assert await workers.run("a", kit.add, 1, 1, seconds=ENOUGH_S) == 2


async def test_work_that_needs_too_much_memory_fails_and_the_next_call_works(
    workers: WorkerProcesses,
) -> None:
    with pytest.raises(TookTooMuch):
        await workers.run("a", kit.fill_memory, seconds=ENOUGH_S)

    assert await workers.run("a", kit.add, 1, 1, seconds=ENOUGH_S) == 2


async def test_a_result_that_is_too_large_is_refused(workers: WorkerProcesses) -> None:
    with pytest.raises(TookTooMuch):
        await workers.run("a", kit.make_reply, 65 * 1024 * 1024, seconds=ENOUGH_S)


async def test_a_worker_that_has_grown_is_replaced(workers: WorkerProcesses) -> None:
    before = await workers.run("a", kit.tell_pid, seconds=ENOUGH_S)
    await workers.run("a", kit.grow, 150 * 1024 * 1024, seconds=ENOUGH_S)

    assert await workers.run("a", kit.tell_pid, seconds=ENOUGH_S) != before


async def test_a_crash_fails_its_call_alone(workers: WorkerProcesses, tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    other = asyncio.ensure_future(
        workers.run("b", kit.wait_for, str(gate), "b", str(log), seconds=ENOUGH_S)
    )
    await until(log.exists)

    with pytest.raises(WorkerDied):
        await workers.run("a", kit.crash, seconds=4.9)
    gate.touch()
    await other

    assert await workers.run("a", kit.add, 1, 1, seconds=ENOUGH_S) == 2


async def test_an_idle_worker_that_was_killed_is_replaced(workers: WorkerProcesses) -> None:
    pid = await workers.run("a", kit.tell_pid, seconds=ENOUGH_S)
    (idle,) = workers._idle
    os.kill(pid, 9)
    await idle.process.wait()

    assert await workers.run("a", kit.add, 1, 1, seconds=ENOUGH_S) == 2


async def test_what_a_call_raises_is_raised_here(workers: WorkerProcesses) -> None:
    missing = await fails(workers.run("a", kit.miss, seconds=ENOUGH_S))
    template = await fails(workers.run("a", kit.fail_template, seconds=ENOUGH_S))
    odd = await fails(workers.run("a", kit.fail_unsendable, seconds=ENOUGH_S))

    assert isinstance(missing, NotFound)
    assert (missing.advice, missing.facts) == ("look elsewhere", {"thing": "it"})
    assert isinstance(template, TemplateProblem)
    assert str(template) == "a.toml:3:4: bad"
    assert isinstance(odd, RuntimeError)
    assert "Unsendable" in str(odd)


async def test_one_org_leaves_a_worker_to_the_others(
    workers: WorkerProcesses, tmp_path: Path
) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    greedy = [
        asyncio.ensure_future(workers.run("a", kit.wait_for, str(gate), "a", str(log), seconds=4.9))
        for _ in range(3)
    ]
    await until(log.exists)

    assert await workers.run("b", kit.add, 1, 1, seconds=4.9) == 2
    assert log.read_text().split() == ["a"]
    gate.touch()
    await asyncio.gather(*greedy)


async def test_long_calls_leave_a_worker_to_short_ones(
    workers: WorkerProcesses, tmp_path: Path
) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    long = [
        asyncio.ensure_future(
            workers.run(org, kit.wait_for, str(gate), org, str(log), seconds=ENOUGH_S)
        )
        for org in ("a", "b")
    ]
    await until(log.exists)

    assert await workers.run("c", kit.add, 1, 1, seconds=4.9) == 2
    assert log.read_text().split() == ["a"]
    gate.touch()
    await asyncio.gather(*long)


async def test_orgs_take_turns(tmp_path: Path) -> None:
    workers = WorkerProcesses(1, waiting=10)
    gate, log = tmp_path / "gate", tmp_path / "log"
    calls = [
        asyncio.ensure_future(
            workers.run(org, kit.wait_for, str(gate), org, str(log), seconds=ENOUGH_S)
        )
        for org in ("a", "a", "a", "a", "b", "b", "c")
    ]
    await until(log.exists)

    gate.touch()
    await asyncio.gather(*calls)

    assert "".join(log.read_text().split()) == "aabcaba"
    await workers.close()


async def test_an_org_may_not_make_others_wait_behind_a_long_line(
    workers: WorkerProcesses, tmp_path: Path
) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    calls = [
        asyncio.ensure_future(
            workers.run("a", kit.wait_for, str(gate), "a", str(log), seconds=ENOUGH_S)
        )
        for _ in range(4)
    ]
    await until(log.exists)

    with pytest.raises(Busy) as refused:
        await workers.run("a", kit.add, 1, 1, seconds=ENOUGH_S)

    assert refused.value.facts["retry_after_s"] == 5
    assert workers.tally.waiting == 3
    gate.touch()
    await asyncio.gather(*calls)


async def test_cancelled_callers_free_their_places(
    workers: WorkerProcesses, tmp_path: Path
) -> None:
    started = tmp_path / "pid"
    running = asyncio.ensure_future(workers.run("a", kit.burn, str(started), seconds=ENOUGH_S))
    pid = await read_pid(started)
    waiting = asyncio.ensure_future(workers.run("a", kit.add, 1, 1, seconds=ENOUGH_S))
    await until(lambda: workers.tally.waiting == 1)

    waiting.cancel()
    running.cancel()
    await asyncio.gather(waiting, running, return_exceptions=True)

    assert not is_alive(pid)
    assert (workers.tally.waiting, workers.tally.running) == (0, 0)
    assert await workers.run("a", kit.add, 1, 1, seconds=ENOUGH_S) == 2


async def test_closing_ends_all_processes_and_calls(tmp_path: Path) -> None:
    workers = WorkerProcesses(2)
    idle = await workers.run("b", kit.tell_pid, seconds=ENOUGH_S)
    started = tmp_path / "pid"
    running = asyncio.ensure_future(workers.run("a", kit.burn, str(started), seconds=ENOUGH_S))
    waiting = asyncio.ensure_future(workers.run("a", kit.add, 1, 1, seconds=ENOUGH_S))
    busy = await read_pid(started)

    await workers.close()

    outcomes = await asyncio.gather(running, waiting, return_exceptions=True)
    assert [type(each) for each in outcomes] == [Unavailable, Unavailable]
    assert not is_alive(idle)
    assert not is_alive(busy)
    with pytest.raises(Unavailable):
        await workers.run("a", kit.add, 1, 1, seconds=ENOUGH_S)


_SERVER = """
import asyncio, sys
from exclave.control.workers.pool import WorkerProcesses
from tests.integration.control.workers import workers_kit as kit

async def main():
    await WorkerProcesses(1).run("a", kit.burn, sys.argv[1], seconds=600.0)

asyncio.run(main())
"""


async def test_a_busy_worker_dies_with_its_server(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _SERVER,
        str(started),
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    pid = await read_pid(started)

    server.kill()
    await server.wait()

    await until(lambda: not is_alive(pid))


async def test_a_worker_inherits_no_socket_and_no_secret(
    workers: WorkerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXCLAVE_DATABASE", "postgresql://u:secret@h/d")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.set_inheritable(True)
        ours = f"socket:[{os.fstat(listening.fileno()).st_ino}]"
        descriptors = await workers.run("a", kit.list_descriptors, seconds=ENOUGH_S)
        environment = await workers.run("a", kit.list_environment, seconds=ENOUGH_S)

    assert ours not in descriptors
    assert not [name for name in environment if name.startswith("EXCLAVE_")]
