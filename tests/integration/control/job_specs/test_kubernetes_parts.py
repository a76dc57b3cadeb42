"""An app of every type that goes to a cluster: what its jobs are told, and what they leave."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from exclave.base.errors import Conflict, InvalidInput, NotFound
from exclave.base.json_values import JsonObject
from exclave.control.deps import Deps
from exclave.control.install_state.state import write_state
from exclave.control.installs import actions
from exclave.control.installs.upgrades import upgrade_install
from exclave.domain.identity import InstallId, QueueId, User
from exclave.domain.install_state import StateDocument
from exclave.domain.installs import Drift, InstallPart, PartState
from exclave.domain.lanes import LaneState
from exclave.domain.workflows import WorkflowState
from exclave.storage import install_parts, queues
from exclave.storage.tables.installs import app_installs
from exclave.wire.actions import RunAction
from exclave.wire.images import PinnedImage
from exclave.wire.installs import Upgrade, WorkflowKind
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.kubernetes import EksCluster, InlineCluster, KubeconfigCluster
from exclave.wire.runner import Outcome
from tests.support.apps import sync
from tests.support.install_fixture import (
    NOTICEBOARD,
    InstallFixture,
    build_all,
    digest_of,
    fail,
    make_install_fixture,
    provision,
    succeed,
)

FILES = {
    "components/web.toml": """
name = "web"
type = "docker_build"
dockerfile = "Dockerfile"
[public_repo]
repo = "."
directory = "modules/page"
""",
    "components/page.toml": """
name = "page"
type = "helm_chart"
chart_name = "page-chart"
namespace = "{{ .nuon.install.id }}"
[public_repo]
repo = "."
directory = "modules/page"
[values]
"image.tag" = "{{ .nuon.components.web.outputs.image.tag }}"
password = "{{ .nuon.secrets.database_password.arn }}"
[[values_file]]
contents = "port: {{ .nuon.inputs.inputs.port }}"
""",
    "components/texts.toml": """
name = "texts"
type = "kubernetes_manifest"
namespace = "shop"
kubernetes_context = "edge"
manifest = '''
apiVersion: v1
kind: ConfigMap
metadata: {name: texts}
data: {api: "{{ .nuon.components.api.outputs.address }}"}
'''
[[operation_roles]]
operation = "teardown"
role = "{{ .nuon.install.name }}-remove"
""",
    "kubernetes_contexts.toml": """
[[kubernetes_context]]
name = "edge"
component = "network"
""",
    "permissions/page.toml": """
type = "custom"
name = "{{ .nuon.install.name }}-page"
description = "Deploys the page."
display_name = "Page"
[[policies]]
managed_policy_name = "ReadOnlyAccess"
""",
    "permissions/all.toml": """
type = "custom"
name = "{{ .nuon.install.name }}-all"
description = "Deploys everything."
display_name = "All"
[[policies]]
managed_policy_name = "ReadOnlyAccess"
""",
    "operation_roles.toml": """
[[rules]]
principal = "nuon::component:*"
operation = "deploy"
role = "{{ .nuon.install.name }}-all"
[[rules]]
principal = "nuon::component:page"
operation = "deploy"
role = "{{ .nuon.install.name }}-page"
""",
}


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = shutil.copytree(NOTICEBOARD, tmp_path / "noticeboard")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


async def list_states(life: InstallFixture) -> dict[str, PartState]:
    parts = await life.deps.db.read(
        lambda tx: install_parts.list_parts(tx, life.user.org, life.install)
    )
    return {part.name: part.state for part in parts}


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
    await _move_to_aws(life)
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
    await _report_cluster(life)
    await actions.run_action(deps, user, InstallId(life.install), RunAction(action="check"))
    await life.run()
    on_a_machine = life.specs["action manual ask"]
    await _move_to_aws(life)
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
    await _move_to_aws(life)

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


async def test_a_rollback_deploys_the_plan_before_and_says_of_which_config(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)
    first = life.specs["apply component:page"].plan
    (app / "components" / "page.toml").write_text(
        FILES["components/page.toml"].replace("port:", "ports:")
    )
    await sync(deps, user, app)
    await build_all(deps, life.build_peer)
    wish = Upgrade(deploy=True, approve_all=True)
    await upgrade_install(deps, user, InstallId(life.install), wish)
    await life.run()
    second = life.specs["apply component:page"].plan
    before = await find_part(life, "component:page")

    workflow = await life.start(
        WorkflowKind.DEPLOY, components=["page"], rollback_to="previous", approve_all=True
    )
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    plan = life.specs["plan component:page"]
    assert (plan.rollback_to, plan.values) == (first, [])
    assert first.digest != second.digest
    after = await find_part(life, "component:page")
    assert after.state is PartState.ACTIVE
    assert after.config_id != before.config_id


async def test_a_rollback_needs_an_earlier_deploy_of_something_that_can_be_rolled_back(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)

    async def roll_back(component: str, to: str = "previous", **more: Any) -> None:
        components = [component]
        await life.start(WorkflowKind.DEPLOY, components=components, rollback_to=to, **more)

    with pytest.raises(Conflict, match="never deployed otherwise"):
        await roll_back("page")
    with pytest.raises(NotFound, match="no earlier plan"):
        await roll_back("page", digest_of("unknown"))
    with pytest.raises(InvalidInput, match="`terraform_module` cannot be rolled back"):
        await roll_back("api")
    with pytest.raises(InvalidInput, match="`docker_build` cannot be rolled back"):
        await roll_back("web")
    with pytest.raises(InvalidInput, match="exactly one component"):
        await roll_back("page", plan_only=True)


async def test_a_deploy_may_take_a_release_over(deps: Deps, user: User, app: Path) -> None:
    life = await provision(deps, user, app)

    await life.start(WorkflowKind.DEPLOY, components=["page"], take_over_release=True)
    await life.run()

    assert life.specs["plan component:page"].take_over_release
    with pytest.raises(InvalidInput, match="takes no release over"):
        await life.start(WorkflowKind.TEARDOWN, components=["page"], take_over_release=True)


@pytest.mark.parametrize(
    ("part", "lane"), [("page", LaneState.FREE), ("api", LaneState.NEEDS_RECONCILE)]
)
async def test_a_lost_apply_blocks_its_lane_unless_a_plan_finds_its_way_from_there(
    deps: Deps, user: User, app: Path, part: str, lane: LaneState
) -> None:
    life = await provision(deps, user, app)
    workflow = await life.start(WorkflowKind.DEPLOY, components=[part], approve_all=True)
    interrupted = Outcome(
        state=OutcomeState.INTERRUPTED, reason=Reason.RUNNER_RESTARTED, message="restarted"
    )
    life.answers[f"apply component:{part}"] = [interrupted]
    await life.run()

    apply = (await life.steps(workflow))[f"{part}.apply"]
    assert apply.reason == Reason.RUNNER_RESTARTED
    lanes = await deps.db.read(lambda tx: queues.list_lanes(tx, user.org, QueueId(life.install)))
    assert {each.name: each.state for each in lanes}[f"component:{part}"] == lane


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


async def find_part(life: InstallFixture, name: str) -> InstallPart:
    parts = await life.deps.db.read(
        lambda tx: install_parts.list_parts(tx, life.user.org, life.install)
    )
    return next(part for part in parts if part.name == name)


async def _move_to_aws(life: InstallFixture) -> None:
    """Let the install be one in a cloud whose Stack this version cannot make yet."""
    mine = (app_installs.c.org_id == life.user.org, app_installs.c.install_id == life.install)
    await life.deps.db.write(
        lambda tx: tx.run(update(app_installs).where(*mine).values(target="aws"))
    )


async def _report_cluster(life: InstallFixture) -> None:
    """Let the Stack report that it knows a kubeconfig."""

    def change(document: StateDocument) -> None:
        clusters: JsonObject = {"default": {"reachable": True, "version": "v1.34.4"}}
        document["install_stack"]["outputs"] = {"kubernetes": clusters}

    await life.deps.db.write(
        lambda tx: write_state(tx, life.user.org, life.install, "stack", change)
    )
