"""A plan of a release for people: objects, hooks, definitions, namespaces, notes."""

from collections.abc import Iterator, Sequence

from exclave.runner.helm.compare import Compared
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.plan_meta import ReleasePlan
from exclave.runner.helm.render import Rendering
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.describe import count_changes, describe_changes
from exclave.runner.kube.changes.ignoring import IgnoreRules, RuleBroken, is_scaler
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from exclave.wire.plans import PlanDocument, PlannedResource

_READABLE_SECRETS = (
    "the release is kept in a ConfigMap, and it has Secrets: they are readable by everybody who may"
    ' read ConfigMaps in the namespace; set `storage_driver = "secret"`'
)
_DEPLOY_EVENTS = {
    True: ("pre-upgrade", "post-upgrade"),
    False: ("pre-install", "post-install"),
}


def describe_release(
    job: HelmContext, compared: Compared, release_plan: ReleasePlan, rendering: Rendering
) -> PlanDocument:
    """Return the readable plan of a deploy; secrets are masked."""
    mask, spec = job.context.mask, job.spec
    ignore = make_ignore_rules(job, compared.wanted)
    resources = [
        *(_describe_namespace(name) for name in compared.namespaces),
        *describe_changes(compared.all_changes, mask, module=spec.release, ignore=ignore),
    ]
    if resources or release_plan.revision == 0:
        resources += _describe_hooks(release_plan)
    warnings = list(rendering.warnings)
    has_secrets = any(change.id.kind == "Secret" for change in compared.changes)
    if release_plan.driver == "configmap" and has_secrets:
        warnings.append(_READABLE_SECRETS)
    recovery = [] if release_plan.recovery is None else [release_plan.recovery.note]
    notes = [*recovery, *rendering.notes, *compared.notes]
    return PlanDocument(
        tool="helm",
        resources=resources,
        summary=count_changes(resources),
        notes=[mask(note) for note in notes],
        warnings=[mask(warning) for warning in warnings],
        outside_images=[mask(image) for image in rendering.outside_images],
    )


def make_ignore_rules(job: HelmContext, wanted: Sequence[WantedObject]) -> IgnoreRules:
    """Return the rules about changes that do not count as drift, such as those of an autoscaler."""
    scalers = [entry.value for entry in wanted if is_scaler(entry.id)]
    try:
        return IgnoreRules(job.spec.ignore, scalers)
    except RuleBroken as broken:
        raise WorkFailed(Reason.SYNTAX, f"ignore: {broken}") from broken


def _describe_namespace(name: str) -> PlannedResource:
    object_id = ObjectId("", "v1", "Namespace", "", name)
    return PlannedResource(
        address=object_id.address, type=object_id.type, name=name, action="create"
    )


def _describe_hooks(release_plan: ReleasePlan) -> Iterator[PlannedResource]:
    events = _DEPLOY_EVENTS[release_plan.revision > 0]
    for hook in release_plan.hooks:
        if set(events) & set(hook.events):
            yield PlannedResource(
                address=hook.address,
                type=hook.type,
                name=hook.name,
                module=release_plan.release,
                action="run",
                events=list(hook.events),
            )
