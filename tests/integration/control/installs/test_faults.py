"""Every step of a provisioning fails once, and is cancelled once; a wide graph; two installs."""

from pathlib import Path

import pytest

from exclave.control.installs import installs
from exclave.control.workflows import workflows
from exclave.domain.identity import QueueId, User
from exclave.domain.workflows import StepKind, StepState, WorkflowId, WorkflowState
from exclave.wire.installs import NewInstall, WorkflowKind
from exclave.wire.jobs import Reason
from tests.support.install_fixture import InstallFixture, fail, make_install_fixture
from tests.support.world import ManualClock, enrol_fake_runner, make_deps, make_org


async def begin() -> tuple[InstallFixture, str, User]:
    deps = make_deps(ManualClock())
    user = await make_org(deps)
    life, workflow = await make_install_fixture(deps, user)
    await life.report()
    return life, workflow, user


_jobs: list[str] = []


async def list_jobs() -> list[str]:
    """List what a provisioning runs; it is the same each time, so it is tried once."""
    if not _jobs:
        life, workflow, _ = await begin()
        await life.run()
        assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
        _jobs.extend(life.ran)
    return _jobs


@pytest.mark.parametrize("at", range(17))
async def test_a_failure_at_any_step_stops_what_needs_it_and_a_retry_ends_well(at: int) -> None:
    jobs = await list_jobs()
    life, workflow, user = await begin()
    job = jobs[at]
    life.answers[job] = [fail(Reason.ACCESS_DENIED, "no")]

    await life.run()

    steps = await life.steps(workflow)
    failed = [name for name, step in steps.items() if step.state is StepState.FAILED]
    assert len(failed) == 1
    assert (await life.show(workflow)).state is WorkflowState.FAILED
    needing = [name for name, step in steps.items() if failed[0] in step.needs]
    assert all(steps[name].state is StepState.PENDING for name in needing)

    await workflows.retry_step(life.deps, user, WorkflowId(workflow), failed[0])
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert sorted(set(life.ran)) == sorted(set(jobs))


@pytest.mark.parametrize("at", range(0, 17, 2))
async def test_a_cancel_at_any_step_ends_everything_and_the_next_workflow_goes_on(at: int) -> None:
    life, workflow, user = await begin()
    while len(life.ran) < at and await life.step():
        pass

    await workflows.cancel_workflow(life.deps, user, WorkflowId(workflow))
    await life.run()

    shown = await life.show(workflow)
    assert shown.state in {WorkflowState.CANCELLED, WorkflowState.SUCCEEDED}
    assert all(step.state.is_over for step in shown.steps)

    again = await life.start(WorkflowKind.REPROVISION)
    await life.run()
    assert (await life.show(again)).state is WorkflowState.SUCCEEDED


def write_wide_app(folder: Path, width: int, depth: int) -> Path:
    """Write an app of `width * depth` components; each layer needs the one before it."""
    app = folder / "wide"
    (app / "components").mkdir(parents=True)
    (app / "module").mkdir()
    (app / "module" / "main.tf").write_text('output "id" { value = "x" }\n')
    (app / "metadata.toml").write_text('version = "v2"\ndisplay_name = "Wide"\ndescription = "x"\n')
    (app / "runner.toml").write_text('runner_type = "local"\n')
    source = '[public_repo]\nrepo = "."\ndirectory = "module"\n'
    (app / "sandbox.toml").write_text(f'terraform_version = "1.11.0"\n{source}')
    for layer in range(depth):
        for row in range(width):
            needs = [f"c{layer - 1}_{other}" for other in range(width)] if layer else []
            (app / "components" / f"c{layer}_{row}.toml").write_text(
                f'name = "c{layer}_{row}"\ntype = "terraform_module"\n'
                f'terraform_version = "1.11.0"\ndependencies = {needs!r}\n{source}'.replace(
                    "'", '"'
                )
            )
    return app


async def test_thirty_components_run_in_as_many_rounds_as_the_graph_is_deep(tmp_path: Path) -> None:
    deps = make_deps(ManualClock())
    user = await make_org(deps)
    life, workflow = await make_install_fixture(deps, user, write_wide_app(tmp_path, 6, 5))
    await life.report()

    rounds = 0
    while await life.step():
        rounds += 1

    shown = await life.show(workflow)
    assert shown.state is WorkflowState.SUCCEEDED
    assert sum(name.startswith("apply component") for name in life.ran) == 30
    assert rounds == 1 + 2 + 5 * 2
    assert {step.kind for step in shown.steps} == {StepKind.JOB, StepKind.GATE, StepKind.WAIT}


async def test_two_installs_never_wait_for_each_other() -> None:
    life, first, user = await begin()
    wish = NewInstall(name="other", app=life.app, approve_all=True)
    made = await installs.create_install(life.deps, user, wish)
    peer = await enrol_fake_runner(life.deps, user, QueueId(made.id))
    other = InstallFixture(life.deps, user, made.id, life.app, life.build_peer, peer)
    await other.report()

    while await life.step() | await other.step():
        pass

    assert (await life.show(first)).state is WorkflowState.SUCCEEDED
    assert (await life.show(made.workflow_id or "")).state is WorkflowState.SUCCEEDED
    assert life.specs["plan sandbox"].vars["name"] == "acme"
    assert other.specs["plan sandbox"].vars["name"] == "other"
