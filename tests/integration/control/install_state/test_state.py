"""The state of an install has a limit: a job whose outputs do not fit fails, and nothing else."""

from exclave.control.deps import Deps
from exclave.control.install_state.state import MOST_BYTES
from exclave.domain.identity import User
from exclave.domain.workflows import StepState, WorkflowState
from tests.support.install_fixture import make_install_fixture


async def test_outputs_that_make_the_state_too_large_fail_their_job(deps: Deps, user: User) -> None:
    life, workflow = await make_install_fixture(deps, user)
    life.outputs["sandbox"] = {"text": "x" * MOST_BYTES}

    await life.report()
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.FAILED
    steps = await life.steps(workflow)
    (failed,) = (step for step in steps.values() if step.state is StepState.FAILED)
    assert "state would have" in failed.message
    assert (await life.state())["sandbox"]["outputs"] is None
