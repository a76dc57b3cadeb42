"""Plans objects: compares them with the cluster and hands in what an apply will do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

from exclave.base.json_values import JsonObject
from exclave.runner.kube.api.errors import ApiRefused
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.changes.cleaning import make_fingerprint
from exclave.runner.kube.changes.compare import Comparison, list_refusals
from exclave.runner.kube.changes.describe import count_changes, describe_changes
from exclave.runner.kube.changes.going_back import describe_choices, make_mark
from exclave.runner.kube.changes.ignoring import IgnoreRules, RuleBroken
from exclave.runner.kube.changes.known import compare_known
from exclave.runner.kube.changes.model import ObjectChange
from exclave.runner.kube.changes.namespaces import find_lasting_namespace
from exclave.runner.kube.changes.ownership import read_uid
from exclave.runner.kube.changes.plan_file import PlanFile, PlannedChange, write_plan
from exclave.runner.kube.changes.reading import list_namespaces
from exclave.runner.kube.changes.state import KubeState, key_of
from exclave.runner.kube.manifests.context import ManifestContext
from exclave.runner.kube.manifests.outputs import gather_outputs
from exclave.runner.kube.manifests.sources import PlanSource
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.plan_outcomes import end_plan
from exclave.runner.plans.reviews import ReviewedObject, check_reviews
from exclave.runner.plans.sealed_plans import hand_in_plan
from exclave.wire.jobs import JsonValue, Reason
from exclave.wire.plans import PlanDocument
from exclave.wire.runner import Outcome

_SCALERS = (("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject"))


@dataclass(frozen=True, slots=True)
class Planned:
    """What would happen, before it is written down."""

    operation: str
    source: str
    state: KubeState
    changes: Sequence[ObjectChange]
    objects: PlanSource | None = None
    namespaces: Sequence[str] = ()
    notes: Sequence[str] = ()


async def plan_objects(job: ManifestContext, source: PlanSource, state: KubeState) -> Planned:
    """Compare objects with the cluster; raise with all refusals of the server at once."""
    missing = await find_missing_namespaces(job, source)
    made_here = list_namespaces(source.wanted)
    unknown = sorted(missing - made_here - {job.spec.namespace})
    if unknown:
        message = "\n".join(
            f"the namespace `{name}` does not exist: add it to the objects" for name in unknown
        )
        raise WorkFailed(Reason.OBJECT_REFUSED, message)
    comparison = Comparison(job.client, job.owner, missing, source.new_kinds)
    changes = await comparison.compare_all(source.wanted)
    refusals = list_refusals(changes)
    if refusals:
        raise WorkFailed(Reason.OBJECT_REFUSED, "\n".join(refusals))
    wanted = {key_of(entry.id) for entry in source.wanted}
    changes += await compare_known(job.client, state.objects, wanted, job.owner)
    namespaces = sorted(missing - made_here)
    notes = [f"the namespace `{name}` does not exist and is created" for name in namespaces]
    return Planned("apply", source.digest, state, changes, source, namespaces, notes)


async def find_missing_namespaces(job: ManifestContext, source: PlanSource) -> set[str]:
    """Return the namespaces of objects that do not exist yet."""
    names = {entry.id.namespace for entry in source.wanted} - {""}
    missing: set[str] = set()
    for name in sorted(names):
        try:
            live = await find_lasting_namespace(job.client, job.context.clock, name)
        except ApiRefused as refused:
            # A role for one namespace cannot read namespaces: then it exists.
            if refused.status.code != HTTPStatus.FORBIDDEN:
                raise
        else:
            missing |= {name} if live is None else set()
    return missing


async def find_scalers(job: ManifestContext, changes: Sequence[ObjectChange]) -> list[JsonObject]:
    """Return the autoscalers in the namespaces of changed objects."""
    discovery = await job.client.discover()
    scalers: list[JsonObject] = []
    for namespace in sorted({change.id.namespace for change in changes if change.fields} - {""}):
        for group, kind in _SCALERS:
            resource = discovery.find_any_version(group, kind)
            if resource is None:
                continue
            try:
                listed = await job.client.list_objects(resource, Selection(namespace))
            except ApiRefused as refused:
                if refused.status.code != HTTPStatus.FORBIDDEN:
                    raise
            else:
                scalers += listed.items
    return scalers


def drop_ignored(changes: Sequence[ObjectChange], rules: IgnoreRules) -> list[ObjectChange]:
    """Return the changes of a drift scan, without what does not count as drift."""
    kept: list[ObjectChange] = []
    for change in changes:
        if change.action != "update":
            kept.append(change)
            continue
        fields = [
            entry
            for entry in change.fields
            if not rules.ignores(change.id, entry.path, change.live)
        ]
        kept.append(replace(change, action="update" if fields else "no-op", fields=fields))
    return kept


async def finish_plan(job: ManifestContext, planned: Planned, opa: str = "") -> Outcome:
    """Ask the policies, write the plan down, hand it in and return the outcome."""
    changes = planned.changes
    try:
        rules = IgnoreRules(job.spec.ignore, await find_scalers(job, changes))
    except RuleBroken as broken:
        raise WorkFailed(Reason.SYNTAX, f"an ignore rule: {broken}") from broken
    if job.spec.scan:
        changes = drop_ignored(changes, rules)
    document = describe(job, replace(planned, changes=changes), rules)
    if job.spec.policies:
        reviewed = [ReviewedObject(change.action, change.live, change.after) for change in changes]
        findings = await check_reviews(job.context, opa, job.spec.policies, reviewed, document)
        document = document.model_copy(update={"policies": findings})
    data = write_plan(make_plan_file(job, planned))
    uplink = job.context.job.uplink
    digest = await hand_in_plan(uplink, job.sealer, job.spec.workspace, data, document)
    noop = not planned.namespaces and all(change.action in {"no-op", "keep"} for change in changes)
    outputs: dict[str, JsonValue] = {
        "digest": digest,
        "noop": noop,
        "serial": planned.state.serial,
        "lineage": planned.state.lineage,
    }
    if noop and planned.objects is not None:
        outputs |= {
            "outputs": await gather_outputs(job, planned.objects.wanted),
            "sensitive_outputs": [],
        }
    return end_plan(document, outputs, reports_drift=job.spec.scan)


def describe(job: ManifestContext, planned: Planned, rules: IgnoreRules) -> PlanDocument:
    """Return the plan for people."""
    mask = job.context.mask
    resources = describe_changes(planned.changes, mask, ignore=rules)
    outside = () if planned.objects is None else planned.objects.outside_images
    return PlanDocument(
        destroy=planned.operation == "teardown",
        tool="kubernetes",
        resources=resources,
        drift=resources if job.spec.scan else [],
        summary=count_changes(resources),
        notes=[mask(note) for note in (*planned.notes, *describe_choices(job.spec))],
        outside_images=[mask(image) for image in outside],
    )


def make_plan_file(job: ManifestContext, planned: Planned) -> PlanFile:
    """Return what the apply needs."""
    return PlanFile(
        operation=planned.operation,
        namespace=job.spec.namespace,
        cluster=planned.state.cluster,
        serial=planned.state.serial,
        lineage=planned.state.lineage,
        source=planned.source,
        changes=[
            PlannedChange(
                change.id,
                change.action,
                make_fingerprint(change.live),
                "" if change.live is None else read_uid(change.live),
                force=change.force,
            )
            for change in planned.changes
        ],
        objects=() if planned.objects is None else planned.objects.wanted,
        namespaces=planned.namespaces,
        fall_back=make_mark(job.spec.fall_back_to),
    )
