"""Plans of an install: who is asked about one, and what is applied."""

import shutil
from pathlib import Path

from exclave.control.deps import Deps
from exclave.control.installs import installs
from exclave.control.installs.config_files import sync_installs
from exclave.domain.identity import InstallId, User
from exclave.domain.installs import ManagedBy
from exclave.domain.workflows import StepState, WorkflowState
from exclave.wire.installs import SyncInstalls, WorkflowKind
from exclave.wire.jobs import Reason
from tests.support.apps import edit
from tests.support.install_fixture import (
    NOTICEBOARD,
    digest_of,
    fail,
    make_install_fixture,
    provision,
    succeed,
)


async def test_a_gate_is_bound_to_its_plan_and_its_apply_gets_exactly_that(
    deps: Deps, user: User
) -> None:
    life, workflow = await make_install_fixture(deps, user, approve_all=False)
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
    life = await provision(deps, user)
    for part in ("network", "cache", "database", "storage", "api", "page"):
        noop = succeed(
            digest=digest_of(part),
            noop=True,
            serial=1,
            outputs={"address": "kept", "id": "n", "path": "/p", "url": "u"},
        )
        life.answers[f"plan component:{part}"] = [noop]

    workflow = await life.start(WorkflowKind.DEPLOY_ALL, approve_all=False)
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
    limits = 'deploy_timeout = "7m"\nbuild_timeout = "2m"\n'
    edit(app, "components/network.toml", "skip_noops = true\n", limits)
    life = await provision(deps, user, app)
    noop = succeed(digest=digest_of("n"), noop=True, serial=0, outputs={"id": "kept"})
    life.answers["plan component:network"] = [noop]

    workflow = await life.start(WorkflowKind.DEPLOY, components=["network"], approve_all=False)
    await life.run()

    assert life.ran == ["noop", "plan component:network", "apply component:network"]
    gate = (await life.steps(workflow))["network.approve"]
    assert (gate.state, gate.reason) == (StepState.SUCCEEDED, "no_changes")
    assert life.specs["apply component:network"].timeout_s == 420.0
    assert life.builds["component:network"].timeout_s == 120.0


async def test_a_stale_plan_is_made_again_and_asked_about_again(deps: Deps, user: User) -> None:
    life, workflow = await make_install_fixture(deps, user, approve_all=False)
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


async def test_auto_approves_what_passes_its_policies_and_asks_about_the_rest(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    await installs.set_managed_by(deps, user, InstallId(life.install), ManagedBy.CONFIG)
    config = {"name": "acme", "approval_option": "auto"}
    wish = SyncInstalls.model_validate({"app": life.app, "installs": [config]})

    await sync_installs(deps, user, wish)
    workflow = await life.start(WorkflowKind.DEPLOY, components=["page", "network"])
    await life.run()

    steps = await life.steps(workflow)
    assert (steps["page.approve"].reason, steps["network.approve"].state) == (
        "policies",
        StepState.ACTIVE,
    )
    shown = await installs.show_install(deps, user, InstallId(life.install))
    assert (shown.approval_option, shown.approve_all) == ("auto", False)
