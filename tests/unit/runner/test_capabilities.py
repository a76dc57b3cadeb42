"""A runner offers to do what its enrolment allows, and nothing else it could do."""

from pathlib import Path

import pytest

from exclave.runner.runner import Runner
from exclave.wire.jobs import JobKind
from exclave.wire.runner import KINDS, Enrol, Enrolled, Poll, PollReply, QueueKind
from tests.support.virtual_time import VirtualClock, run_virtual
from tests.unit.runner.fake_control import FakeControl
from tests.unit.runner.harness import RunnerHarness


class Control(FakeControl):
    """Enrols runners of one kind, and remembers what they offer to do."""

    def __init__(self, clock: VirtualClock, kind: QueueKind) -> None:
        super().__init__(clock)
        self.kind = kind
        self.offered: set[JobKind] = set()

    async def enrol(self, request: Enrol) -> Enrolled:
        return (await super().enrol(request)).model_copy(update={"kind": self.kind})

    async def poll(self, token: str, request: Poll) -> PollReply:
        self.offered |= set(request.capabilities)
        return await super().poll(token, request)


class EveryKind(RunnerHarness):
    """A house whose runner has an executor for every kind of job."""

    def build(self) -> Runner:
        runner = super().build()
        runner._executors = dict.fromkeys(JobKind, self.executor)
        return runner


@pytest.mark.parametrize("kind", list(QueueKind))
def test_what_a_runner_offers_depends_on_its_queue(tmp_path: Path, kind: QueueKind) -> None:
    async def main() -> set[JobKind]:
        house = EveryKind(tmp_path)
        control = Control(house.clock, kind)
        house.control = control
        runner, task = house.start()
        await house.clock.sleep(5)
        await house.stop(runner, task)
        return control.offered

    assert run_virtual(main()) == KINDS[kind]


def test_only_build_runners_build() -> None:
    assert JobKind.BUILD in KINDS[QueueKind.BUILD]
    assert JobKind.BUILD not in KINDS[QueueKind.INSTALL]
    assert JobKind.TERRAFORM not in KINDS[QueueKind.BUILD]
