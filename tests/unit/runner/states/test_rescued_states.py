"""A state that is too large for a proxy outlives its execution, and is handed in later."""

from pathlib import Path
from typing import Any, cast

import pytest

from exclave.client.problems import ProxyTooLarge
from exclave.client.work import WorkApi
from exclave.main.runner import send_rescued_states
from exclave.runner.jobs.executor import EndedRun, JobRun, StopRequest
from exclave.runner.logs.spool import LogWriter
from exclave.runner.states.rescued_states import RESCUED, settle_state
from exclave.runner.states.unsent_state import JOURNAL, keep_state
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from exclave.wire.states import SealedState, StateHeader, unpack_state
from exclave.wire.terraform import AttachmentReply
from tests.unit.runner.fake_control import FakeControl
from tests.unit.runner.harness import FakeExecutor, RunnerHarness, run_scenario

STATE = SealedState(
    header=StateHeader(serial=3, lineage="line", sha256="0" * 64), sealed=b"sealed bytes" * 50
)


class Narrow:
    """The calls of executions, behind a proxy that lets only small bodies through."""

    def __init__(self) -> None:
        self.most = 100
        self.tries = 0
        self.taken: dict[tuple[str, str], bytes] = {}

    async def write_state(self, token: str, execution_id: str, **more: Any) -> None:
        del token
        self._pass(f"POST /v1/executions/{execution_id}/state", more["state"].pack())

    async def put_attachment(
        self, token: str, execution_id: str, name: str, *, epoch: int, data: bytes
    ) -> AttachmentReply:
        del token, epoch
        self._pass(f"PUT /v1/executions/{execution_id}/attachments/{name}", data)
        self.taken[execution_id, name] = data
        return AttachmentReply(name=name, digest="sha256:0", size=len(data))

    def _pass(self, place: str, data: bytes) -> None:
        self.tries += 1
        if len(data) > self.most:
            raise ProxyTooLarge(place, len(data))


class NarrowControl(FakeControl):
    """A control plane behind that proxy."""

    narrow: Narrow

    @property
    def work(self) -> WorkApi:
        return cast("WorkApi", self.narrow)


class LeavingExecutor(FakeExecutor):
    """Leaves a state, and a journal, that nobody has taken."""

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        del log, stop
        keep_state(job.folder, "sandbox", "lock", STATE)
        (job.folder / JOURNAL).write_bytes(b"{}\n" * 100)
        return Outcome(state=OutcomeState.INTERRUPTED, reason=Reason.STATE_REFUSED)

    async def settle(self, ended: EndedRun) -> None:
        await settle_state(ended)


@pytest.mark.parametrize("restart", [False, True])
def test_a_state_too_large_for_a_proxy_is_kept_and_handed_in_once_it_passes(
    tmp_path: Path, *, restart: bool
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        control = NarrowControl(house.clock)
        control.narrow = Narrow()
        house.control, house.executor = control, LeavingExecutor(house.clock)
        house.duties = [send_rescued_states]
        runner, task = house.start()
        name = control.add_job(mutating=True)
        await house.clock.sleep(30)
        kept = house.config.data / RESCUED / name
        assert control.result_of(name) is not None  # the job ends in spite of it
        assert kept.exists()
        assert not (house.config.data / "executions" / name).exists()
        assert control.narrow.tries < 12

        control.narrow.most = 1_000_000
        if restart:
            await house.stop(runner, task)
            runner, task = house.start()
        await house.clock.sleep(700)

        await house.stop(runner, task)
        handed = control.narrow.taken[name, "errored.tfstate.sealed"]
        assert unpack_state(handed) == STATE
        assert not kept.exists()
        assert "rescued_state_sent" in house.audit_events()

    run_scenario(tmp_path, scenario)


@pytest.mark.parametrize(
    "header",
    [b"rubbish", b"[]", b'{"epoch": 1}', b'{"execution_id": "e", "epoch": "1"}'],
)
def test_a_kept_state_with_a_wrong_header_stays_for_a_person(tmp_path: Path, header: bytes) -> None:
    async def scenario(house: RunnerHarness) -> None:
        control = NarrowControl(house.clock)
        control.narrow = Narrow()
        house.control, house.duties = control, [send_rescued_states]
        kept = house.config.data / RESCUED / "e"
        kept.parent.mkdir(parents=True)
        kept.write_bytes(header + b"\n" + STATE.pack())

        runner, task = house.start()
        await house.clock.sleep(700)
        await house.stop(runner, task)

        assert kept.exists()
        assert control.narrow.tries == 0

    run_scenario(tmp_path, scenario)
