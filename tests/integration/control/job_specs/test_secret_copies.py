"""Secrets that are copied into namespaces: when the copies are made, brought up to date, removed."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from exclave.control.deps import Deps
from exclave.control.installs.upgrades import upgrade_install
from exclave.domain.identity import InstallId, User
from exclave.domain.workflows import WorkflowState
from exclave.storage.engine.database import Tx
from exclave.storage.tables.terraform import tf_states
from exclave.storage.tables.work import executions
from exclave.wire.installs import Upgrade, UpgradeReply, WorkflowKind
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import KubeconfigCluster
from tests.support.apps import sync
from tests.support.install_fixture import (
    NOTICEBOARD,
    InstallFixture,
    build_all,
    fail,
    provision,
)

COPIED = """
kubernetes_sync = true
kubernetes_secret_namespace = "shop"
kubernetes_secret_name = "db"
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = shutil.copytree(NOTICEBOARD, tmp_path / "noticeboard")
    file = folder / "secrets.toml"
    file.write_text(file.read_text() + COPIED)
    return folder


async def test_a_deprovision_removes_the_copies_after_the_components_and_before_the_sandbox(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)
    await list_copies(life, "Secret/shop/db")

    workflow = await life.start(WorkflowKind.DEPROVISION, approve_all=True)
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    order = life.ran
    assert order.index("destroy-apply component:network") < order.index("secrets")
    assert order.index("secrets") < order.index("destroy-plan sandbox")
    spec = life.specs["secrets"]
    assert (spec.secrets, spec.targets) == ([], [])
    assert spec.cluster == KubeconfigCluster(name="default")
    assert (await life.state())["secrets"] == {}


async def test_a_sandbox_stays_until_the_copies_are_gone(deps: Deps, user: User, app: Path) -> None:
    life = await provision(deps, user, app)
    await list_copies(life, "Secret/shop/db")
    life.answers["secrets"] = [fail(Reason.CLUSTER_UNREACHABLE, "no answer")]

    workflow = await life.start(WorkflowKind.DEPROVISION, approve_all=True)
    await life.run()

    steps = await life.steps(workflow)
    assert steps["secrets-remove"].message == "no answer"
    assert "destroy-plan sandbox" not in life.ran


async def test_without_copies_nothing_is_removed(deps: Deps, user: User) -> None:
    life = await provision(deps, user, NOTICEBOARD)

    workflow = await life.start(WorkflowKind.DEPROVISION, approve_all=True)

    assert "secrets-remove" not in await life.steps(workflow)


async def test_a_removal_needs_no_cluster_if_no_copy_was_ever_made(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)

    await life.start(WorkflowKind.DEPROVISION, approve_all=True)
    await life.run()

    assert life.specs["secrets"].cluster is None


async def test_a_deploy_brings_the_copies_up_to_date_first(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)
    life.ran.clear()

    await life.start(WorkflowKind.DEPLOY, components=["network"], approve_all=True)
    await life.run()

    assert life.ran.index("secrets") < life.ran.index("plan component:network")


async def test_copies_that_the_app_names_no_more_go_with_the_next_deploy(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)
    await list_copies(life, "Secret/shop/db")
    file = app / "secrets.toml"
    file.write_text(file.read_text().removesuffix(COPIED))

    reply = await upgrade(life, app)
    await life.run()

    assert reply.workflow is not None
    assert [step.name for step in reply.workflow.steps] == ["runner", "secrets"]
    spec = life.specs["secrets"]
    assert [secret.name for secret in spec.secrets] == ["database_password"]
    assert (spec.targets, spec.cluster) == ([], KubeconfigCluster(name="default"))


async def test_copies_go_also_if_the_app_has_no_secret_any_more(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)
    await list_copies(life, "Secret/shop/db")
    forget_secrets(app)

    await upgrade(life, app)
    await life.run()

    assert (life.specs["secrets"].secrets, life.specs["secrets"].targets) == ([], [])
    assert life.specs["secrets"].cluster == KubeconfigCluster(name="default")


def forget_secrets(app: Path) -> None:
    (app / "secrets.toml").unlink()
    for file in app.rglob("*.toml"):
        file.write_text(file.read_text().replace(".nuon.secrets.database_password.arn", '"none"'))


async def upgrade(life: InstallFixture, app: Path) -> UpgradeReply:
    await sync(life.deps, life.user, app)
    await build_all(life.deps, life.build_peer)
    wish = Upgrade(deploy=True, approve_all=True)
    return await upgrade_install(life.deps, life.user, InstallId(life.install), wish)


async def list_copies(life: InstallFixture, *addresses: str) -> None:
    """Store the list that a runner writes when it has copied secrets."""
    await life.deps.db.write(lambda tx: _store(tx, life, addresses))


def _store(tx: Tx, life: InstallFixture, addresses: Sequence[str]) -> None:
    known = tx.first(select(executions.c.id).where(executions.c.org_id == life.user.org).limit(1))
    assert known is not None
    row = {
        "org_id": life.user.org,
        "queue_id": life.install,
        "workspace": "secrets",
        "version": 1,
        "serial": 1,
        "lineage": "line",
        "sha256": "0" * 64,
        "size": 1,
        "blob": "none",
        "resources": [{"address": address, "type": "v1 Secret"} for address in addresses],
        "epoch": 1,
        "execution_id": known.id,
        "at": tx.now,
    }
    tx.run(insert(tf_states).values(**row))
