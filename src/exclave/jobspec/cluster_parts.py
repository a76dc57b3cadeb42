"""What the jobs of charts and manifests have in common."""

from collections.abc import Sequence
from typing import TypedDict

from exclave.appconfig.model.kinds.components import Teardown
from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest
from exclave.domain.intents import ApplyPart, PartIntent, PlanPart, ScanPart, StoredPlan
from exclave.jobspec.facts import ApplyFacts, PartFacts, PlanFacts
from exclave.jobspec.health import make_health_rules
from exclave.jobspec.texts import read_timeout, render_label, render_policies
from exclave.jobspec.workspaces import name_workspace
from exclave.wire.images import PinnedImage
from exclave.wire.kubernetes import ClusterRef, IgnoreRule, Operation, TeardownRules, WaitRules
from exclave.wire.spec_fields import PlanRef, RegoPolicy


class ClusterFields(TypedDict):
    """Fields of a specification that charts and manifests fill alike."""

    operation: Operation
    destroy: bool
    scan: bool
    workspace: str
    cluster: ClusterRef
    namespace: str
    images: list[PinnedImage]
    ignore: list[IgnoreRule]
    wait: WaitRules
    teardown: TeardownRules
    policies: list[RegoPolicy]
    plan: PlanRef | None
    rollback_to: PlanRef | None
    fall_back_to: PlanRef | None
    adopt: bool
    delay_s: float
    timeout_s: float


def fill_plan(
    definition: HelmChart | KubernetesManifest, facts: PlanFacts, intent: PlanPart | ScanPart
) -> ClusterFields:
    """Return the common fields of a job that plans."""
    fields = _fill(definition, facts, intent, "plan")
    fields["scan"] = facts.is_drift_scan
    fields["policies"] = render_policies(facts.render, facts.policies)
    if isinstance(intent, PlanPart):
        fields["adopt"] = intent.adopt
        is_deploy = not intent.destroy and intent.rollback_to is None
        if definition.rollback_on_failure and is_deploy:
            fields["fall_back_to"] = facts.deployed
        fields["delay_s"] = intent.delay_s or 0.0
        fields["rollback_to"] = _name_plan(intent.rollback_to)
    return fields


def fill_apply(
    definition: HelmChart | KubernetesManifest, facts: ApplyFacts, intent: ApplyPart
) -> ClusterFields:
    """Return the common fields of a job that applies the plan that was approved."""
    fields = _fill(definition, facts, intent, "apply")
    fields["plan"] = facts.plan
    return fields


def is_rendered(facts: PlanFacts, intent: PlanPart | ScanPart) -> bool:
    """Return whether a plan is made of what the app says now, not of what was deployed."""
    rolls_back = isinstance(intent, PlanPart) and intent.rollback_to is not None
    return not (intent.destroy or rolls_back or facts.is_drift_scan)


def _fill(
    definition: HelmChart | KubernetesManifest,
    facts: PartFacts,
    intent: PartIntent,
    operation: Operation,
) -> ClusterFields:
    part, render = intent.part, facts.render
    deploy_s = read_timeout(render(definition.deploy_timeout, f"{part}: deploy_timeout"))
    wait = WaitRules(no_downtime=definition.require_no_downtime)
    if operation == "apply" and not intent.destroy:
        health = make_health_rules(definition, render, part)
        going_back_s = deploy_s if definition.rollback_on_failure else 0.0
        wait = wait.model_copy(update={"health": health, "going_back_s": going_back_s})
    return ClusterFields(
        operation=operation,
        destroy=intent.destroy,
        scan=False,
        workspace=name_workspace(intent.component),
        cluster=facts.require_cluster(),
        namespace=render_label(render, definition.namespace, f"{part}: namespace"),
        images=_sort_images(facts.images),
        ignore=[
            IgnoreRule(kind=rule.kind, name=rule.name, path=rule.path) for rule in definition.ignore
        ],
        wait=wait,
        teardown=_read_teardown(definition.teardown),
        policies=[],
        plan=None,
        rollback_to=None,
        fall_back_to=None,
        adopt=False,
        delay_s=0.0,
        timeout_s=deploy_s + wait.kept_s,
    )


def _read_teardown(teardown: Teardown | None) -> TeardownRules:
    if teardown is None:
        return TeardownRules()
    return TeardownRules(volumes=teardown.volumes, namespace=teardown.namespace)


def _name_plan(plan: StoredPlan | None) -> PlanRef | None:
    return None if plan is None else PlanRef(execution_id=plan.execution, digest=plan.digest)


def _sort_images(images: Sequence[PinnedImage]) -> list[PinnedImage]:
    return sorted(images, key=lambda image: (image.repository, image.tag))
