from pathlib import Path

import zstandard

from exclave.base.ids import SeededRandomness
from exclave.runner.logs.protocols import SendLog, ShippedLog
from exclave.runner.logs.spooled_log import bind_open_log
from exclave.wire.runner import LogReply
from tests.unit.runner.fake_control import FakeControl
from tests.unit.runner.harness import RunnerHarness, run_scenario


class Archive(FakeControl):
    """Keeps the logs."""

    stream = b""

    async def append_log(
        self, token: str, execution_id: str, *, offset: int, epoch: int, frame: bytes
    ) -> LogReply:
        await self._travel("append_log", token)
        data = zstandard.ZstdDecompressor().decompress(frame)
        assert offset <= len(self.stream)
        self.stream = self.stream[:offset] + data
        return LogReply(next_offset=len(self.stream))


class SpoolingHouse(RunnerHarness):
    """Its logs go through the real spool and uploader."""

    def open_log(self, folder: Path, execution_id: str, send: SendLog) -> ShippedLog:
        opener = bind_open_log(self.clock, SeededRandomness(1))
        return opener(folder, execution_id, send)


def test_the_log_of_cut_off_work_arrives_whole_after_the_restart(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        control = house.control = Archive(house.clock)
        control.down_for["append_log"] = None
        _, task = house.start()
        name = control.add_job(mutating=True)
        await house.clock.sleep(10)
        await house.crash(task)
        control.down_for.clear()

        runner, task = house.start()
        await house.clock.sleep(10)
        await house.stop(runner, task)

        outcome = control.result_of(name)
        assert outcome is not None
        assert outcome.log_end == len(control.stream)
        assert b"began" in control.stream
        assert b"restarted" in control.stream

    run_scenario(tmp_path, scenario, SpoolingHouse, lasts_s=500.0)
