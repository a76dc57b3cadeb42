"""An app of every type that goes to a cluster: what its jobs are told, and what they leave."""

from pathlib import Path
from typing import Any

import pytest

from exclave.control.deps import Deps
from exclave.control.installs import actions
from exclave.domain.identity import InstallId, User
from exclave.domain.installs import Drift, PartState
from exclave.domain.workflows import WorkflowState
from exclave.storage import install_parts
from exclave.wire.actions import RunAction
from exclave.wire.images import PinnedImage
from exclave.wire.installs import WorkflowKind
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import EksCluster, InlineCluster, KubeconfigCluster
from tests.integration.control.job_specs.kubernetes_app import (
    list_states,
    move_to_aws,
    report_cluster,
)
from tests.support.install_fixture import (
    digest_of,
    fail,
    make_install_fixture,
    provision,
    succeed,
)


async def test_an_app_is_provisioned_in_the_order_of_what_its_parts_read(
    deps: Deps, user: User, app: Path
) -> None:
    life, workflow = await make_install_fixture(deps, user, app)
    await life.report()
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    order = life.ran
    assert order.index("sync web") < order.index("plan component:page")
    assert order.index("apply component:api") < order.index("plan component:texts")
    assert (await list_states(life))["component:web"] is PartState.ACTIVE
    outputs = (await life.state())["components"]["web"]["outputs"]
    assert outputs["image"]["repository"] == "registry.acme/web"


async def test_a_plan_of_a_chart_is_told_the_images_by_digest_and_secrets_by_name(
    deps: Deps, user: User, app: Path
) -> None:
    life, _ = await make_install_fixture(deps, user, app)
    await life.report()
    await life.run()

    plan, apply = life.specs["plan component:page"], life.specs["apply component:page"]
    built = digest_of(life.builds["component:web"].source)
    assert life.specs["sync web"].artifact.digest == built
    tag = "x" + built.removeprefix("sha256:")[:40]
    assert plan.images == [PinnedImage(repository="registry.acme/web", tag=tag, digest=built)]
    assert plan.sets["image.tag"] == tag
    assert plan.sets["password"] == "((exclave:secret:database_password))"
    assert (plan.values, plan.namespace) == (["port: 8790"], life.install.replace("_", "-"))
    assert plan.cluster == KubeconfigCluster(name="default")
    assert apply.plan.digest.startswith("sha256:")
    assert (apply.values, apply.sets) == ([], {})
    assert "api.internal" in life.specs["plan component:texts"].manifest


@pytest.mark.parametrize(
    ("outputs", "wanted"),
    [
        ({}, KubeconfigCluster(name="edge")),
        (
            {"cluster": "((exclave:output:component:network:cluster))"},
            InlineCluster(kubeconfig="((exclave:output:component:network:cluster))"),
        ),
    ],
)
async def test_a_context_is_the_cluster_of_its_component(
    deps: Deps, user: User, app: Path, outputs: dict[str, Any], wanted: object
) -> None:
    life, _ = await make_install_fixture(deps, user, app)
    life.outputs["component:network"] = {"id": "net", **outputs}
    await life.report()
    await life.run()

    assert life.specs["plan component:texts"].cluster == wanted


async def test_in_a_cloud_the_role_of_the_operation_is_in_the_job(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)
    await move_to_aws(life)
    cluster = {
        "name": "prod",
        "arn": "arn:aws:eks:eu-west-1:1:cluster/prod",
        "endpoint": "https://k8s.example",
        "certificate_authority_data": "Y2E=",
    }
    life.outputs["sandbox"] = {"folder": "/srv", "name": "acme", "cluster": cluster}
    await life.start(WorkflowKind.REPROVISION, approve_all=True)
    await life.run()

    page = life.specs["plan component:page"].cluster
    assert isinstance(page, EksCluster)
    assert (page.region, page.role) == ("eu-west-1", "acme-page")


async def test_an_action_gets_the_cluster_of_the_sandbox_where_there_is_one(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)
    await actions.run_action(deps, user, InstallId(life.install), RunAction(action="check"))
    await life.run()
    unreported = life.specs["action manual ask"]
    await report_cluster(life)
    await actions.run_action(deps, user, InstallId(life.install), RunAction(action="check"))
    await life.run()
    on_a_machine = life.specs["action manual ask"]
    await move_to_aws(life)
    await actions.run_action(deps, user, InstallId(life.install), RunAction(action="check"))
    await life.run()
    in_a_cloud = life.specs["action manual ask"]

    assert (unreported.cluster, in_a_cloud.cluster) == (None, None)
    assert on_a_machine.cluster == KubeconfigCluster(name="default")
    assert on_a_machine.kube_config == "optional"


async def test_without_a_cluster_a_step_says_what_is_missing(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)
    await move_to_aws(life)

    workflow = await life.start(WorkflowKind.DEPLOY, components=["page"])
    await life.run()

    step = (await life.steps(workflow))["page.plan"]
    assert step.reason == Reason.CLUSTER_UNREACHABLE
    assert "the sandbox has no output `cluster` and the Stack names no kubeconfig" in step.message
    assert (await list_states(life))["component:page"] is PartState.FAILED


async def test_a_drift_scan_compares_what_was_deployed_and_leaves_images_out(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)
    life.answers["plan component:page"] = [succeed(digest=digest_of(1), noop=True, serial=0)]

    await life.start(WorkflowKind.DRIFT_SCAN, components=["page", "texts", "web"])
    await life.run()

    assert {name for name in life.ran if name != "noop"} == {
        "plan component:page",
        "plan component:texts",
    }
    page = life.specs["plan component:page"]
    assert (page.scan, page.values, page.sets) == (True, [], {})
    parts = await deps.db.read(lambda tx: install_parts.list_parts(tx, user.org, life.install))
    drift = {part.name: part.drift for part in parts}
    assert (drift["component:page"], drift["component:texts"]) == (Drift.NONE, Drift.DRIFTED)


async def test_everything_is_torn_down_and_the_image_goes_last(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)

    workflow = await life.start(WorkflowKind.TEARDOWN_ALL, approve_all=True)
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert life.ran.index("destroy-apply component:page") < life.ran.index("remove web")
    plan = life.specs["destroy-plan component:page"]
    assert (plan.destroy, plan.values) == (True, [])
    assert (await list_states(life))["component:web"] is PartState.ABSENT
    assert not (await life.state())["components"]["web"]["outputs"]


async def test_a_copy_that_fails_fails_its_part_and_what_needs_it_does_not_begin(
    deps: Deps, user: User, app: Path
) -> None:
    life, workflow = await make_install_fixture(deps, user, app)
    life.answers["sync web"] = [fail(Reason.IMAGE_UNAVAILABLE, "no such image")]
    await life.report()
    await life.run()

    steps = await life.steps(workflow)
    assert steps["web.sync"].reason == Reason.IMAGE_UNAVAILABLE
    assert (await list_states(life))["component:web"] is PartState.FAILED
    assert "plan component:page" not in life.ran
