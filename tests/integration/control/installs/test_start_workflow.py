"""Work on an install over the real use cases: what runs, and in which order."""

import shutil
from pathlib import Path

import pytest

from exclave.base.errors import Conflict
from exclave.control.deps import Deps
from exclave.domain.identity import User
from exclave.domain.workflows import StepState, WorkflowState
from exclave.storage import install_parts, schedules
from exclave.wire.installs import WorkflowKind
from tests.support.apps import edit, sync
from tests.support.install_fixture import (
    NOTICEBOARD,
    build_all,
    digest_of,
    make_install_fixture,
    provision,
    succeed,
)


async def test_provision_waits_for_the_stack_then_deploys_by_the_graph(
    deps: Deps, user: User
) -> None:
    life, workflow = await make_install_fixture(deps, user)
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
        "network": "net-acme",
        "password": "((exclave:secret:database_password))",
    }
    state = await life.state()
    assert state["components"]["page"]["outputs"] == {"url": "http://127.0.0.1:8790/"}
    assert state["install"]["sandbox"]["outputs"]["name"] == "acme"
    assert state["actions"]["workflows"]["check"]["outputs"]["status"] == "200"
    assert state["secrets"]["database_password"]["exists"] is True


async def test_deploying_one_component_takes_its_dependents_only_when_asked(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)

    await life.start(WorkflowKind.DEPLOY, components=["api"])
    await life.run()
    assert [n for n in life.ran if n.startswith("apply")] == ["apply component:api"]

    life.ran.clear()
    await life.start(WorkflowKind.DEPLOY, components=["api"], dependents=True)
    await life.run()
    assert [n for n in life.ran if n.startswith("apply")] == [
        "apply component:api",
        "apply component:page",
    ]


async def test_deprovision_takes_all_down_in_reverse_and_leaves_nothing(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)

    workflow = await life.start(WorkflowKind.DEPROVISION)
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
        await life.start(WorkflowKind.DEPLOY_ALL)


async def test_a_drift_scan_changes_nothing_and_tells_what_drifted(deps: Deps, user: User) -> None:
    life = await provision(deps, user)
    noop = succeed(digest=digest_of(1), noop=True, serial=1, outputs={})
    life.answers["plan component:cache"] = [noop]

    workflow = await life.start(WorkflowKind.DRIFT_SCAN)
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert all(name.startswith("plan") or name == "noop" for name in life.ran)
    parts = await deps.db.read(lambda tx: install_parts.list_parts(tx, user.org, life.install))
    drift = {row.name: row.drift for row in parts}
    assert (drift["component:cache"], drift["component:api"], drift["sandbox"]) == (
        "none",
        "drifted",
        "drifted",
    )


async def test_a_deprovision_during_a_deploy_waits_its_turn(deps: Deps, user: User) -> None:
    life = await provision(deps, user)
    first = await life.start(WorkflowKind.DEPLOY_ALL)
    second = await life.start(WorkflowKind.DEPROVISION)

    await life.run()

    assert (await life.show(first)).state is WorkflowState.SUCCEEDED
    assert (await life.show(second)).state is WorkflowState.SUCCEEDED
    last_apply = max(at for at, name in enumerate(life.ran) if name.startswith("apply "))
    first_destroy = min(at for at, name in enumerate(life.ran) if name.startswith("destroy-apply"))
    assert last_apply < first_destroy


async def test_a_config_that_is_synced_meanwhile_changes_nothing_that_runs(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    life, workflow = await make_install_fixture(deps, user)
    await life.report()
    await life.step()
    changed = shutil.copytree(NOTICEBOARD, tmp_path / "noticeboard")
    edit(changed, "components/page.toml", "{{ .nuon.inputs.inputs.title }}", "New")
    await sync(deps, user, changed)
    await build_all(deps, life.build_peer)

    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert life.specs["plan component:page"].vars["title"] == "Hello from your own machine"
