"""Hostile values: whatever a tenant or its runner sends, one step ends and all else goes on."""

from pathlib import Path
from typing import Any

import pytest

from exclave.control.apps import apps
from exclave.control.builds import builds
from exclave.control.deps import Deps
from exclave.control.dispatch import completion
from exclave.control.installs import actions, runbooks
from exclave.control.installs.inputs import set_inputs
from exclave.control.orgs.accounts import who_am_i
from exclave.control.progress.prepare_steps import prepare_all
from exclave.domain.identity import InstallId, QueueId, User
from exclave.domain.workflows import StepState, WorkflowState
from exclave.wire.actions import RunAction, RunRunbook
from exclave.wire.apps import NewApp
from exclave.wire.installs import SetInputs, WorkflowKind
from tests.integration.control.hostile_kit import (
    BAD_BUILDS,
    INPUTS,
    OUTPUTS,
    RESULTS,
    write_hostile_app,
)
from tests.support.apps import sync
from tests.support.install_fixture import InstallFixture, build_all, make_install_fixture, succeed
from tests.support.world import enrol_fake_runner, job, make_install, make_org, run_workflow

_REFUSED = {"render_failed", "outputs_invalid", "plan_stale", "plan_missing"}


async def prepare(deps: Deps, user: User, folder: Path) -> InstallFixture:
    """Provision an install of the app with values that harm nobody."""
    life, workflow = await make_install_fixture(deps, user, write_hostile_app(folder))
    life.outputs["component:net"] = {"id": "net-1"}
    await life.report()
    await settle(life)
    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    return life


async def settle(life: InstallFixture) -> None:
    """End all jobs, those too whose texts are rendered outside of transactions."""
    await life.run()
    while life.deps.postponed.first(life.user.org):
        await prepare_all(life.deps, life.user.org)
        await life.run()


async def run_everything(life: InstallFixture) -> list[str]:
    """Begin work of every kind and end all jobs; answer the workflows."""
    install = InstallId(life.install)
    made = [
        (await actions.run_action(life.deps, life.user, install, RunAction(action=name))).id
        for name in ("line", "empty", "text")
    ]
    book = RunRunbook(runbook="book", inputs={"word": "it's"})
    made.append((await runbooks.run_runbook(life.deps, life.user, install, book)).id)
    made.append(await life.start(WorkflowKind.REPROVISION))
    await settle(life)
    return made


async def check_ended(name: str, life: InstallFixture, made: list[str]) -> dict[str, StepState]:
    """Check that each workflow ended, and each failed step with a reason; answer all steps."""
    found: dict[str, StepState] = {}
    for workflow in made:
        shown = await life.show(workflow)
        assert shown.state is not WorkflowState.RUNNING, (name, shown)
        for step in shown.steps:
            found[f"{shown.name} {step.name}"] = step.state
            if step.state is StepState.FAILED:
                assert step.reason in _REFUSED, (name, step.name, step.reason, step.message)
                assert 0 < len(step.message) <= 4000, name
    return found


async def check_others(deps: Deps) -> None:
    """Check that another org's work goes on."""
    other = await make_org(deps, "other")
    queue = await make_install(deps, other)
    peer = await enrol_fake_runner(deps, other, queue)
    await run_workflow(deps, other, queue, job("one", mutating=True, lanes=["sandbox"]))
    assert len(await peer.work()) == 1


async def test_whatever_an_input_holds_ends_steps_and_nothing_else(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    life = await prepare(deps, user, tmp_path)

    for name, value in INPUTS.items():
        wish = SetInputs(values={"msg": value})
        changed = await set_inputs(deps, user, InstallId(life.install), wish)
        await settle(life)
        made = await run_everything(life)

        begun = [changed.workflow.id] if changed.workflow else []
        steps = await check_ended(name, life, [*begun, *made])
        assert steps["action_run runner"] is StepState.SUCCEEDED, name
        assert (await life.state())["inputs"]["inputs"]["msg"] == value, name

    await check_others(deps)


async def test_a_value_makes_no_new_word_of_a_command(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    life = await prepare(deps, user, tmp_path)
    wish = SetInputs(values={"msg": "it's --yes -rf /"})
    await set_inputs(deps, user, InstallId(life.install), wish)
    await settle(life)

    await actions.run_action(deps, user, InstallId(life.install), RunAction(action="line"))
    await settle(life)

    spec = life.specs["action manual go"]
    assert spec.steps[0].argv[:2] == ["echo", "it's --yes -rf /"]
    assert len(spec.steps[0].argv) == 3


async def test_whatever_a_module_has_as_output_ends_steps_and_nothing_else(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    life = await prepare(deps, user, tmp_path)

    for name, value in OUTPUTS.items():
        life.outputs["component:net"] = {"id": value}
        made = [await life.start(WorkflowKind.REPROVISION)]
        await settle(life)
        made += await run_everything(life)

        await check_ended(name, life, made)
        assert (await life.state())["id"] == life.install, name

    await check_others(deps)


async def test_whatever_a_runner_hands_in_ends_its_job(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    life = await prepare(deps, user, tmp_path)

    for name, result in RESULTS.items():
        life.answers = _Always(result)
        made = await run_everything(life)

        await check_ended(name, life, made)
        assert (await life.state())["id"] == life.install, name

    await check_others(deps)


@pytest.mark.parametrize("outputs", BAD_BUILDS.values(), ids=BAD_BUILDS)
async def test_whatever_a_build_hands_in_ends_it(
    deps: Deps, user: User, tmp_path: Path, outputs: dict[str, Any]
) -> None:
    directory = write_hostile_app(tmp_path)
    await apps.create_app(deps, user, NewApp(name=directory.name))
    await sync(deps, user, directory)
    queue = QueueId((await who_am_i(deps, user)).org.build_queue_id)
    peer = await enrol_fake_runner(deps, user, queue, "builder")

    await build_all(deps, peer, succeed(**outputs))

    made = (
        await builds.list_builds(deps, user, cursor="", limit=10, app=None, part=None, state=None)
    ).items
    assert {build.state for build in made} == {"failed"}
    assert all(build.error for build in made)


class _Always(dict[str, Any]):
    """The same result for every job."""

    def __init__(self, outputs: dict[str, Any]) -> None:
        super().__init__()
        self._outcome = succeed(**outputs)

    def get(self, key: str, default: Any = None) -> Any:
        del key, default
        return [self._outcome]

    def __getitem__(self, key: str) -> Any:
        return self.get(key)


async def test_a_result_is_recorded_even_if_nothing_of_the_install_can_be_written(
    deps: Deps, user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = await prepare(deps, user, tmp_path)
    made = await actions.run_action(deps, user, InstallId(life.install), RunAction(action="line"))
    monkeypatch.setattr(completion, "apply_job_result", lambda *_: 1 // 0)

    await settle(life)

    shown = await life.show(made.id)
    assert shown.state is WorkflowState.FAILED
    assert {step.reason for step in shown.steps if step.state is StepState.FAILED} == {
        "outputs_invalid"
    }
