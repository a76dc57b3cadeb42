"""Failures in the work on an install: what stops, what is tried again, what is lost."""

import pytest

from exclave.base.errors import Conflict
from exclave.control.deps import Deps
from exclave.control.installs import installs
from exclave.control.workflows import workflows
from exclave.domain.identity import InstallId, User
from exclave.domain.workflows import StepState, WorkflowId, WorkflowState
from exclave.storage import install_parts
from exclave.wire.jobs import Reason
from tests.support.install_fixture import fail, make_install_fixture


async def test_a_failed_component_stops_only_what_needs_it_and_a_retry_goes_on(
    deps: Deps, user: User
) -> None:
    life, workflow = await make_install_fixture(deps, user)
    life.answers["apply component:cache"] = [fail(Reason.ACCESS_DENIED, "no rights")]
    await life.report()
    await life.run()

    shown = await life.show(workflow)
    assert shown.state is WorkflowState.FAILED
    assert "apply component:database" in life.ran
    assert "plan component:api" not in life.ran
    steps = await life.steps(workflow)
    assert (steps["cache.apply"].reason, steps["cache.apply"].message) == (
        "access_denied",
        "no rights",
    )

    life.ran.clear()
    await workflows.retry_step(deps, user, WorkflowId(workflow), "cache.apply")
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert life.ran[:2] == ["plan component:cache", "apply component:cache"]
    assert "apply component:database" not in life.ran


async def test_failures_that_may_pass_are_tried_again_by_themselves_after_a_while(
    deps: Deps, user: User
) -> None:
    life, workflow = await make_install_fixture(deps, user)
    flaky = fail(Reason.NETWORK, "connection reset")
    life.answers["apply component:database"] = [flaky, flaky]
    await life.report()
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert life.ran.count("apply component:database") == 3
    assert life.specs["plan component:database"].delay_s == 20.0


async def test_a_failure_that_cannot_pass_is_not_tried_again(deps: Deps, user: User) -> None:
    life, workflow = await make_install_fixture(deps, user)
    life.answers["plan component:database"] = [fail(Reason.SYNTAX, "no such argument")]
    await life.report()
    await life.run()

    assert life.ran.count("plan component:database") == 1
    assert (await life.show(workflow)).state is WorkflowState.FAILED


async def test_a_template_that_cannot_be_rendered_fails_its_step_and_says_where(
    deps: Deps, user: User
) -> None:
    life, workflow = await make_install_fixture(deps, user)
    life.outputs["component:network"] = {"other": "x"}
    await life.report()
    await life.run()

    step = (await life.steps(workflow))["cache.plan"]
    assert (step.state, step.reason) == (StepState.FAILED, "render_failed")
    assert "component:cache: vars.network" in step.message
    assert "id" in step.message
    parts = await deps.db.read(lambda tx: install_parts.list_parts(tx, user.org, life.install))
    assert {row.name: row.state for row in parts}["component:cache"] == "failed"


async def test_a_lost_apply_blocks_its_lane_and_is_planned_again_after_a_look(
    deps: Deps, user: User
) -> None:
    life, workflow = await make_install_fixture(deps, user)
    await life.report()
    while "plan sandbox" not in life.ran:
        await life.step()
    offer = (await life.poll())[0]
    await life.peer.start(offer.execution_id, offer.epoch)
    life.peer = life.peer.restarted()
    await life.run()

    assert (await life.steps(workflow))["sandbox-apply"].state is StepState.LOST
    with pytest.raises(Conflict, match="needs a look"):
        await workflows.retry_step(deps, user, WorkflowId(workflow), "sandbox-apply")

    install = InstallId(life.install)
    await installs.release_lane(deps, user, install, "sandbox", "looked at it")
    await workflows.retry_step(deps, user, WorkflowId(workflow), "sandbox-apply")
    await life.run()

    assert life.ran.count("plan sandbox") == 2
    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
