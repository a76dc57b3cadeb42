"""Policies of a cluster: a part of their own, between the sandbox and the components."""

from pathlib import Path

from exclave.control.deps import Deps
from exclave.control.installs.upgrades import upgrade_install
from exclave.domain.identity import InstallId, User
from exclave.domain.installs import PartState
from exclave.domain.workflows import WorkflowState
from exclave.wire.installs import Upgrade, WorkflowKind
from tests.integration.control.job_specs.kubernetes_app import list_states
from tests.support.apps import sync
from tests.support.install_fixture import (
    build_all,
    provision,
)

KYVERNO = """
type = "kubernetes_cluster"
engine = "kyverno"
name = "labels"
contents = '''
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: "{{ .nuon.install.name }}-labels"}
'''
"""


async def test_policies_of_the_cluster_are_planned_after_the_sandbox_and_removed_before_it(
    deps: Deps, user: User, app: Path
) -> None:
    (app / "policies" / "labels.toml").write_text(KYVERNO)
    life = await provision(deps, user, app)
    spec = life.specs["plan policies"]
    assert 'name: "acme-labels"' in spec.manifest
    assert spec.workspace == "policies"
    assert (await list_states(life))["policies"] is PartState.ACTIVE
    assert "" not in (await life.state())["components"]

    workflow = await life.start(WorkflowKind.DEPROVISION, approve_all=True)
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    order = life.ran
    assert order.index("destroy-apply component:page") < order.index("destroy-plan policies")
    assert order.index("destroy-apply policies") < order.index("destroy-plan sandbox")
    assert (await list_states(life))["policies"] is PartState.ABSENT


async def test_policies_that_left_the_app_leave_the_cluster_with_the_next_reprovision(
    deps: Deps, user: User, app: Path
) -> None:
    (app / "policies" / "labels.toml").write_text(KYVERNO)
    life = await provision(deps, user, app)
    (app / "policies" / "labels.toml").unlink()
    await sync(deps, user, app)
    await build_all(deps, life.build_peer)
    await upgrade_install(deps, user, InstallId(life.install), Upgrade())

    await life.start(WorkflowKind.REPROVISION, approve_all=True)
    await life.run()

    assert "destroy-apply policies" in life.ran
    assert (await list_states(life))["policies"] is PartState.ABSENT
