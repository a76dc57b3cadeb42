"""What an install is after a workflow ended, by what is there of it."""

import pytest

from exclave.control.deps import Deps
from exclave.control.installs import installs
from exclave.control.workflows import workflows
from exclave.domain.identity import InstallId, User
from exclave.domain.workflows import WorkflowId
from exclave.storage import schedules
from exclave.wire.installs import WorkflowKind
from tests.support.install_fixture import InstallFixture, fail, make_install_fixture, provision


async def tell_state(life: InstallFixture) -> str | None:
    return (await installs.show_install(life.deps, life.user, InstallId(life.install))).state


async def count_schedules(life: InstallFixture) -> int:
    found = await life.deps.db.read(
        lambda tx: schedules.list_schedules(tx, life.user.org, life.install)
    )
    return len(found)


async def cancel(life: InstallFixture, workflow: str) -> None:
    await workflows.cancel_workflow(life.deps, life.user, WorkflowId(workflow))


async def test_a_deprovision_that_was_cancelled_before_any_change_leaves_it_active(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    crons = await count_schedules(life)
    workflow = await life.start(WorkflowKind.DEPROVISION)
    assert await tell_state(life) == "deprovisioning"

    await cancel(life, workflow)

    assert await tell_state(life) == "active"
    assert await count_schedules(life) == crons > 0


async def test_a_deprovision_that_was_cancelled_half_way_leaves_it_failed(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    workflow = await life.start(WorkflowKind.DEPROVISION)
    while not any("destroy-apply" in name for name in life.ran):
        await life.step()

    await cancel(life, workflow)
    await life.run()

    assert await tell_state(life) == "failed"


async def test_a_provision_that_was_cancelled_before_any_change_leaves_it_new(
    deps: Deps, user: User
) -> None:
    life, workflow = await make_install_fixture(deps, user)
    assert await tell_state(life) == "provisioning"

    await cancel(life, workflow)

    assert await tell_state(life) == "new"


async def test_a_provision_that_failed_leaves_it_failed(deps: Deps, user: User) -> None:
    life, _ = await make_install_fixture(deps, user)
    life.answers["apply sandbox"] = [fail()]

    await life.report()
    await life.run()

    assert await tell_state(life) == "failed"


@pytest.mark.parametrize(("plan_only", "state"), [(False, "active"), (True, "new")])
async def test_a_reprovision_of_a_new_install_makes_it_active(
    deps: Deps, user: User, *, plan_only: bool, state: str
) -> None:
    life, _ = await make_install_fixture(deps, user, provision=False)
    await life.report()

    await life.start(WorkflowKind.REPROVISION, plan_only=plan_only)
    await life.run()

    assert await tell_state(life) == state
    assert (await count_schedules(life) > 0) == (state == "active")
