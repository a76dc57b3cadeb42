"""Workflows of an install over the real use cases: order, plans, failures, retries, state."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from exclave.base.errors import Conflict, NotFound
from exclave.control import actions, installs, runbooks, workflows
from exclave.control.deps import Deps
from exclave.control.install_configs import sync_installs
from exclave.control.install_work import start_work
from exclave.control.schedules import fire_schedules
from exclave.domain.identity import InstallId, User
from exclave.domain.workflows import StepState, WorkflowId, WorkflowState
from exclave.storage import install_parts, schedules
from exclave.wire.actions import RunAction, RunRunbook
from exclave.wire.installs import StartWork, SyncInstalls, WorkKind
from exclave.wire.jobs import Reason
from tests.lives import NOTICEBOARD, Life, build_all, digest_of, fail, live, succeed, sync
from tests.world import ManualClock, make_org


@pytest.fixture
async def user(deps: Deps) -> User:
    return await make_org(deps)


async def provisioned(deps: Deps, user: User) -> Life:
    life, workflow = await live(deps, user)
    await life.report()
    await life.run()
    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    life.ran.clear()
    return life


async def start(life: Life, kind: WorkKind, **more: Any) -> str:
    wish = StartWork(kind=kind, **more)
    return (await start_work(life.deps, life.user, InstallId(life.install), wish)).id


async def test_provision_waits_for_the_stack_then_deploys_by_the_graph(
    deps: Deps, user: User
) -> None:
    life, workflow = await live(deps, user)
    await life.run()
    assert life.ran == []
    assert (await life.steps(workflow))["stack"].state is StepState.ACTIVE

    await life.report()
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    order = {name: at for at, name in enumerate(life.ran)}
    assert order["apply sandbox"] < order["secrets"] < order["plan component:network"]
    for early, late in (
        ("network", "cache"),
        ("database", "api"),
        ("storage", "api"),
        ("api", "page"),
    ):
        assert order[f"apply component:{early}"] < order[f"plan component:{late}"]
    assert order["apply component:page"] < order["action post-deploy-component ask"]
    assert life.ran[-1] == "action post-provision greet"
    assert life.specs["plan component:page"].vars["title"] == "Hello from your own machine"
    assert life.specs["plan component:database"].vars == {
        "network": "net-acme", "password": "((exclave:secret:database_password))",
    }  # fmt: skip
    state = await life.state()
    assert state["components"]["page"]["outputs"] == {"url": "http://127.0.0.1:8790/"}
    assert state["install"]["sandbox"]["outputs"]["name"] == "acme"
    assert state["actions"]["workflows"]["check"]["outputs"]["status"] == "200"
    assert state["secrets"]["database_password"]["exists"] is True


async def test_a_gate_is_bound_to_its_plan_and_its_apply_gets_exactly_that(
    deps: Deps, user: User
) -> None:
    life, workflow = await live(deps, user, approve_all=False)
    await life.report()
    await life.run()
    gate = (await life.steps(workflow))["sandbox-approve"]
    assert gate.state is StepState.ACTIVE

    await life.approve(workflow, "sandbox-approve")
    await life.run()

    assert life.specs["apply sandbox"].plan.digest == gate.digest
    assert "apply sandbox" in life.ran


async def test_a_plan_without_changes_asks_nobody_and_is_not_applied(
    deps: Deps, user: User
) -> None:
    life = await provisioned(deps, user)
    for part in ("network", "cache", "database", "storage", "api", "page"):
        noop = succeed(
            digest=digest_of(part),
            noop=True,
            serial=1,
            outputs={"address": "kept", "id": "n", "path": "/p", "url": "u"},
        )
        life.answers[f"plan component:{part}"] = [noop]

    workflow = await start(life, WorkKind.DEPLOY_ALL, approve_all=False)
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert not any(name.startswith("apply") for name in life.ran)
    steps = await life.steps(workflow)
    assert (steps["api.approve"].state, steps["api.approve"].reason) == (
        StepState.SKIPPED,
        "no_changes",
    )
    assert (await life.state())["components"]["api"]["outputs"]["address"] == "kept"


async def test_without_skip_noops_a_plan_without_changes_is_applied_and_asks_nobody(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    app = shutil.copytree(NOTICEBOARD, tmp_path / "noticeboard")
    file = app / "components" / "network.toml"
    limits = 'deploy_timeout = "7m"\nbuild_timeout = "2m"\n'
    file.write_text(file.read_text().replace("skip_noops = true\n", limits))
    life, _ = await live(deps, user, app)
    await life.report()
    await life.run()
    life.ran.clear()
    noop = succeed(digest=digest_of("n"), noop=True, serial=0, outputs={"id": "kept"})
    life.answers["plan component:network"] = [noop]

    workflow = await start(life, WorkKind.DEPLOY, components=["network"], approve_all=False)
    await life.run()

    assert life.ran == ["noop", "plan component:network", "apply component:network"]
    gate = (await life.steps(workflow))["network.approve"]
    assert (gate.state, gate.reason) == (StepState.SUCCEEDED, "no_changes")
    assert life.specs["apply component:network"].timeout_s == 420.0
    assert life.builds["component:network"].timeout_s == 120.0


async def test_a_failed_component_stops_only_what_needs_it_and_a_retry_goes_on(
    deps: Deps, user: User
) -> None:
    life, workflow = await live(deps, user)
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
    life, workflow = await live(deps, user)
    flaky = fail(Reason.NETWORK, "connection reset")
    life.answers["apply component:database"] = [flaky, flaky]
    await life.report()
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert life.ran.count("apply component:database") == 3
    assert life.specs["plan component:database"].delay_s == 20.0


async def test_a_failure_that_cannot_pass_is_not_tried_again(deps: Deps, user: User) -> None:
    life, workflow = await live(deps, user)
    life.answers["plan component:database"] = [fail(Reason.SYNTAX, "no such argument")]
    await life.report()
    await life.run()

    assert life.ran.count("plan component:database") == 1
    assert (await life.show(workflow)).state is WorkflowState.FAILED


async def test_a_stale_plan_is_made_again_and_asked_about_again(deps: Deps, user: User) -> None:
    life, workflow = await live(deps, user, approve_all=False)
    life.answers["apply sandbox"] = [fail(Reason.PLAN_STALE, "stale")]
    await life.report()
    await life.run()
    first = (await life.steps(workflow))["sandbox-approve"].digest
    await life.approve(workflow, "sandbox-approve")
    await life.run()

    gate = (await life.steps(workflow))["sandbox-approve"]

    assert life.ran.count("plan sandbox") == 2
    assert gate.state is StepState.ACTIVE
    assert gate.digest != first


async def test_a_template_that_cannot_be_rendered_fails_its_step_and_says_where(
    deps: Deps, user: User
) -> None:
    life, workflow = await live(deps, user)
    life.outputs["component:network"] = {"other": "x"}
    await life.report()
    await life.run()

    step = (await life.steps(workflow))["cache.plan"]
    assert (step.state, step.reason) == (StepState.FAILED, "render_failed")
    assert "component:cache: vars.network" in step.message
    assert "id" in step.message
    parts = await deps.db.read(lambda tx: install_parts.list_parts(tx, user.org, life.install))
    assert {row.part: row.state for row in parts}["component:cache"] == "failed"


async def test_deploying_one_component_takes_its_dependents_only_when_asked(
    deps: Deps, user: User
) -> None:
    life = await provisioned(deps, user)

    await start(life, WorkKind.DEPLOY, components=["api"])
    await life.run()
    assert [n for n in life.ran if n.startswith("apply")] == ["apply component:api"]

    life.ran.clear()
    await start(life, WorkKind.DEPLOY, components=["api"], dependents=True)
    await life.run()
    assert [n for n in life.ran if n.startswith("apply")] == [
        "apply component:api",
        "apply component:page",
    ]


async def test_deprovision_takes_all_down_in_reverse_and_leaves_nothing(
    deps: Deps, user: User
) -> None:
    life = await provisioned(deps, user)

    workflow = await start(life, WorkKind.DEPROVISION)
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    applied = [name.removeprefix("destroy-apply ") for name in life.ran if "destroy-apply" in name]
    assert applied[0] == "component:page"
    assert applied[-2:] == ["component:network", "sandbox"]
    parts = await deps.db.read(lambda tx: install_parts.list_parts(tx, user.org, life.install))
    assert {row.state for row in parts} == {"absent"}
    assert (await life.state())["components"]["page"]["outputs"] is None
    assert await deps.db.read(lambda tx: schedules.list_schedules(tx, user.org, life.install)) == []
    with pytest.raises(Conflict, match="deprovisioned"):
        await start(life, WorkKind.DEPLOY_ALL)


async def test_a_drift_scan_changes_nothing_and_tells_what_drifted(deps: Deps, user: User) -> None:
    life = await provisioned(deps, user)
    noop = succeed(digest=digest_of(1), noop=True, serial=1, outputs={})
    life.answers["plan component:cache"] = [noop]

    workflow = await start(life, WorkKind.DRIFT_SCAN)
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert all(name.startswith("plan") or name == "noop" for name in life.ran)
    parts = await deps.db.read(lambda tx: install_parts.list_parts(tx, user.org, life.install))
    drift = {row.part: row.drift for row in parts}
    assert (drift["component:cache"], drift["component:api"], drift["sandbox"]) == (
        "none",
        "drifted",
        "drifted",
    )


async def test_actions_run_by_hand_with_values_of_their_own(deps: Deps, user: User) -> None:
    life = await provisioned(deps, user)
    install = InstallId(life.install)

    assert isinstance(deps.clock, ManualClock)
    deps.clock.advance(1)
    await actions.run_action(
        deps, user, install, RunAction(action="check", env={"URL": "http://x/"})
    )
    await life.run()

    spec = life.specs["action manual ask"]
    assert spec.env["URL"] == "http://x/"
    assert spec.env["NUON_INSTALL_ID"] == life.install
    runs = await actions.list_runs(deps, user, install, action="check", cursor="", limit=10)
    assert [(run.trigger, run.state) for run in runs.items] == [
        ("manual", "succeeded"), ("post-deploy-component", "succeeded"),
    ]  # fmt: skip
    with pytest.raises(NotFound, match="chek") as caught:
        await actions.run_action(deps, user, install, RunAction(action="chek"))
    assert "check" in caught.value.advice


async def test_a_runbook_goes_step_by_step(deps: Deps, user: User) -> None:
    life = await provisioned(deps, user)

    await runbooks.run_runbook(deps, user, InstallId(life.install), RunRunbook(runbook="refresh"))
    await life.run()

    assert [n for n in life.ran if n != "noop"] == [
        "plan component:api", "apply component:api", "plan component:page", "apply component:page",
        "action post-deploy-component ask", "action runbook ask",
    ]  # fmt: skip


async def test_a_file_switches_a_component_and_changes_its_variables(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    app = shutil.copytree(NOTICEBOARD, tmp_path / "noticeboard")
    file = app / "components" / "page.toml"
    text = "toggleable = true\ndefault_enabled = true\nskip_noops = true\n"
    file.write_text(file.read_text().replace("skip_noops = true\n", text))
    life, _ = await live(deps, user, app)
    await life.report()
    await life.run()
    await installs.set_managed_by(deps, user, InstallId(life.install), "config")
    life.ran.clear()
    options = {
        "component_toggles": {"page": False},
        "components": {"cache": {"tf_vars": 'size = 7\nname = "{{ .nuon.install.name }}"'}},
    }
    config = {"name": "acme", "approval_option": "approve-all", **options}
    wish = SyncInstalls.model_validate({"app": life.app, "installs": [config]})

    done = (await sync_installs(deps, user, wish)).installs[0]
    await life.run()
    again = (await sync_installs(deps, user, wish)).installs[0]

    assert [change.what for change in done.changes] == [
        "component_toggles.page", "components.cache.tf_vars",
    ]  # fmt: skip
    assert (await life.show(done.teardown_id or "")).state is WorkflowState.SUCCEEDED
    assert "destroy-apply component:page" in life.ran
    assert "apply component:api" in life.ran, "it stands on the cache"
    assert life.specs["apply component:cache"].var_files[-1] == 'size = 7\nname = "acme"'
    assert (again.action, again.workflow_id) == ("none", None)

    life.ran.clear()
    await start(life, WorkKind.DEPLOY_ALL)
    await life.run()
    assert "plan component:page" not in life.ran


async def test_auto_approves_what_passes_its_policies_and_asks_about_the_rest(
    deps: Deps, user: User
) -> None:
    life = await provisioned(deps, user)
    await installs.set_managed_by(deps, user, InstallId(life.install), "config")
    config = {"name": "acme", "approval_option": "auto"}
    wish = SyncInstalls.model_validate({"app": life.app, "installs": [config]})

    await sync_installs(deps, user, wish)
    workflow = await start(life, WorkKind.DEPLOY, components=["page", "network"])
    await life.run()

    steps = await life.steps(workflow)
    assert (steps["page.approve"].reason, steps["network.approve"].state) == (
        "policies", StepState.ACTIVE,
    )  # fmt: skip
    shown = await installs.show_install(deps, user, InstallId(life.install))
    assert (shown.approval_option, shown.approve_all) == ("auto", False)


async def test_crons_fire_once_per_tick_and_not_while_the_last_run_goes_on(
    deps: Deps, user: User
) -> None:
    life = await provisioned(deps, user)
    clock = deps.clock
    assert isinstance(clock, ManualClock)

    clock.advance(15 * 60)
    await fire_schedules(deps)
    await fire_schedules(deps)
    await life.run()
    assert life.ran.count("action cron ask") == 1

    clock.advance(15 * 60)
    await fire_schedules(deps)
    clock.advance(15 * 60)
    await fire_schedules(deps)
    rows = await deps.db.read(lambda tx: schedules.list_schedules(tx, user.org, life.install))
    assert "had not ended" in next(row.note for row in rows if row.kind == "action")
    await life.run()
    assert life.ran.count("action cron ask") == 2


async def test_a_config_that_is_synced_meanwhile_changes_nothing_that_runs(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    life, workflow = await live(deps, user)
    await life.report()
    await life.step()
    changed = tmp_path / "noticeboard"
    shutil.copytree(NOTICEBOARD, changed)
    page = changed / "components" / "page.toml"
    page.write_text(page.read_text().replace("{{ .nuon.inputs.inputs.title }}", "New"))
    await sync(deps, user, "noticeboard", changed)
    await build_all(deps, life.build_peer)

    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert life.specs["plan component:page"].vars["title"] == "Hello from your own machine"


async def test_a_lost_apply_blocks_its_lane_and_is_planned_again_after_a_look(
    deps: Deps, user: User
) -> None:
    life, workflow = await live(deps, user)
    await life.report()
    while "plan sandbox" not in life.ran:
        await life.step()
    offer = (await life.offers())[0]
    await life.peer.start(offer.execution_id, offer.epoch)
    life.peer = life.peer.reborn()
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


async def test_a_deprovision_during_a_deploy_waits_its_turn(deps: Deps, user: User) -> None:
    life = await provisioned(deps, user)
    first = await start(life, WorkKind.DEPLOY_ALL)
    second = await start(life, WorkKind.DEPROVISION)

    await life.run()

    assert (await life.show(first)).state is WorkflowState.SUCCEEDED
    assert (await life.show(second)).state is WorkflowState.SUCCEEDED
    last_apply = max(at for at, name in enumerate(life.ran) if name.startswith("apply "))
    first_destroy = min(at for at, name in enumerate(life.ran) if name.startswith("destroy-apply"))
    assert last_apply < first_destroy
