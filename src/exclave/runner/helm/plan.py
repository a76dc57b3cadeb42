"""Plan a release: render once, freeze, compare with the cluster; nothing is changed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from exclave.base.json_values import JsonObject, text_or_empty
from exclave.runner.helm.compare import Compared, compare_release
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.freeze import freeze
from exclave.runner.helm.plan_meta import (
    PlannedHook,
    ReleasePlan,
    read_release_plan,
    write_release_plan,
)
from exclave.runner.helm.records import Driver, ReleaseRecord, find_driver
from exclave.runner.helm.recovery import Recovery, decide_recovery
from exclave.runner.helm.render import Rendering, render_release
from exclave.runner.helm.rendered import RenderedRelease
from exclave.runner.helm.show import describe_release
from exclave.runner.helm.values import write_values
from exclave.runner.kube.api.objects import SourceObject
from exclave.runner.kube.changes.cleaning import make_fingerprint
from exclave.runner.kube.changes.going_back import describe_choices, make_mark
from exclave.runner.kube.changes.model import ObjectChange
from exclave.runner.kube.changes.ownership import read_uid
from exclave.runner.kube.changes.plan_file import (
    PlanFile,
    PlannedChange,
    read_plan_file,
    write_plan,
)
from exclave.runner.kube.changes.state import KubeState
from exclave.runner.kube.images import pin_images
from exclave.runner.kube.pull_secrets import names_pull_secret
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.plan_outcomes import end_plan
from exclave.runner.plans.reviews import ReviewedObject, check_reviews
from exclave.runner.plans.sealed_plans import digest_plan, hand_in_plan, open_plan
from exclave.wire.jobs import Reason
from exclave.wire.plans import PlanDocument
from exclave.wire.runner import Outcome
from exclave.wire.spec_fields import PlanRef

_BUSY_TRIES = 3
_BUSY_PAUSE_S = 20.0


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """What is known about a release before it is planned."""

    state: KubeState
    driver: Driver
    records: Sequence[ReleaseRecord]
    recovery: Recovery | None

    @property
    def revision(self) -> int:
        """The last revision; 0 if there is none."""
        return self.records[-1].revision if self.records else 0

    @property
    def is_deployed(self) -> bool:
        """Whether the last revision was deployed with success."""
        return bool(self.records) and self.records[-1].status == "deployed"


async def read_facts(job: HelmContext) -> ReleaseFacts:
    """Read state and records; wait a little for somebody else's Helm."""
    spec = job.spec
    state = await job.read_state()
    for attempt in range(_BUSY_TRIES + 1):
        driver, records = await find_driver(job.client, spec.driver, spec.namespace, spec.release)
        try:
            recovery = decide_recovery(
                records,
                job.queue,
                removing=state.removing,
                destroy=spec.destroy,
                take_over=spec.take_over_release,
            )
        except WorkFailed as busy:
            if attempt == _BUSY_TRIES:
                raise
            job.context.log.system(f"{busy.message}; looking again in {_BUSY_PAUSE_S:g} s")
            await job.context.pause(_BUSY_PAUSE_S)
        else:
            return ReleaseFacts(state, driver, records, recovery)
    raise AssertionError  # the loop returns or raises


async def plan_release(job: HelmContext) -> Outcome:
    """Plan a deploy: of the artifact, or of what an earlier plan held."""
    facts = await read_facts(job)
    if job.spec.rollback_to is not None:
        rendering, release_plan = await open_earlier(job, facts, job.spec.rollback_to)
    else:
        rendering, release_plan = await _render(job, facts)
    compared = await compare_release(job, facts.state, facts.records, rendering, release_plan.crds)
    release_plan = replace(release_plan, crds=[wanted for wanted, _ in compared.crds])
    rendering = rendering._replace(warnings=(*rendering.warnings, *describe_choices(job.spec)))
    document = describe_release(job, compared, release_plan, rendering)
    return await hand_in(job, facts, compared, release_plan, document)


async def _render(job: HelmContext, facts: ReleaseFacts) -> tuple[Rendering, ReleasePlan]:
    rendering = await render_release(
        job,
        facts.driver,
        is_upgrade=bool(facts.records),
        is_stuck=facts.recovery is not None,
    )
    outside: set[str] = set()

    def pin(value: JsonObject) -> JsonObject:
        pinned = pin_images([value], job.spec.images, pull_secret=job.pull_secrets.name)
        outside.update(pinned.list_outside())
        return pinned.objects[0]

    frozen = await asyncio.to_thread(freeze, rendering.release, pin)
    release_plan = ReleasePlan(
        release=job.spec.release,
        driver=facts.driver,
        revision=facts.revision,
        chart=frozen.chart,
        values=write_values(rendering.values),
        chart_name=_read(frozen.release.metadata, "name"),
        chart_version=_read(frozen.release.metadata, "version"),
        app_version=_read(frozen.release.metadata, "appVersion"),
        hooks=[_plan_hook(job, hook.source, hook.events) for hook in frozen.release.hooks],
        recovery=facts.recovery,
        take_ownership=job.spec.take_ownership,
    )
    warnings = (*rendering.warnings, *frozen.warnings)
    shown = rendering._replace(
        release=frozen.release, warnings=warnings, outside_images=tuple(sorted(outside))
    )
    return shown, release_plan


async def open_earlier(
    job: HelmContext, facts: ReleaseFacts, earlier: PlanRef
) -> tuple[Rendering, ReleasePlan]:
    """Return the content of an earlier plan: nothing is rendered, so random values stay equal."""
    data = await open_plan(
        job.context.job.uplink, job.sealer, job.spec.workspace, earlier.execution_id
    )
    if digest_plan(data) != earlier.digest:
        message = f"the earlier plan is not {earlier.digest} any more"
        raise WorkFailed(Reason.PLAN_MISSING, message)
    plan_file = read_earlier(data)
    content = read_release_plan(plan_file)
    objects = [SourceObject(0, 0, wanted.id, wanted.value) for wanted in plan_file.objects]
    release = RenderedRelease({}, objects, ())
    note = f"the content of the plan {earlier.digest[:19]}…, which was deployed before"
    plan = replace(content, driver=facts.driver, revision=facts.revision, recovery=facts.recovery)
    return Rendering(release, (), {}, (note,)), plan


def read_earlier(data: bytes) -> PlanFile:
    """Return an earlier plan of the part."""
    try:
        return read_plan_file(data)
    except ValueError as error:
        raise WorkFailed(
            Reason.PLAN_MISSING, f"the earlier plan cannot be read: {error}"
        ) from error


async def hand_in(
    job: HelmContext,
    facts: ReleaseFacts,
    compared: Compared,
    release_plan: ReleasePlan,
    document: PlanDocument,
) -> Outcome:
    """Store the plan, sealed, and what people see of it; return the outcome."""
    state = facts.state
    plan_file = make_plan_file(job, state, compared, release_plan)
    data = await asyncio.to_thread(write_plan, plan_file)
    document = await _check_policies(job, compared, document)
    uplink = job.context.job.uplink
    digest = await hand_in_plan(uplink, job.sealer, job.spec.workspace, data, document)
    is_noop = not document.resources and facts.is_deployed and facts.recovery is None
    return end_plan(
        document,
        {"digest": digest, "noop": is_noop, "serial": state.serial, "lineage": state.lineage},
        reports_drift=job.spec.scan,
    )


def make_plan_file(
    job: HelmContext, state: KubeState, compared: Compared, release_plan: ReleasePlan
) -> PlanFile:
    """Return what the apply needs."""
    return PlanFile(
        operation="teardown" if job.spec.destroy else "apply",
        namespace=job.spec.namespace,
        cluster=state.cluster,
        serial=state.serial,
        lineage=state.lineage,
        source=job.spec.artifact.digest,
        changes=[plan_change(change) for change in compared.all_changes],
        objects=compared.wanted,
        namespaces=compared.namespaces,
        fall_back=make_mark(job.spec.fall_back_to),
        extra=write_release_plan(release_plan),
    )


async def _check_policies(
    job: HelmContext, compared: Compared, document: PlanDocument
) -> PlanDocument:
    """Return the document with what policies say about its objects."""
    if not job.spec.policies:
        return document
    reviewed = [
        ReviewedObject(
            change.action, change.live, None if change.action == "delete" else change.after
        )
        for change in compared.all_changes
    ]
    findings = await check_reviews(job.context, job.opa, job.spec.policies, reviewed, document)
    return document.model_copy(update={"policies": findings})


def plan_change(change: ObjectChange) -> PlannedChange:
    """Return a change as the apply needs it: what happens, and how the object has to look."""
    fingerprint = make_fingerprint(change.live)
    uid = "" if change.live is None else read_uid(change.live)
    return PlannedChange(change.id, change.action, fingerprint, uid, change.force)


def _plan_hook(job: HelmContext, source: SourceObject, events: Sequence[str]) -> PlannedHook:
    pulls = names_pull_secret(source.value, job.pull_secrets.name)
    pulls_in = (source.id.namespace or job.spec.namespace) if pulls else ""
    return PlannedHook(source.id.address, source.id.type, source.id.name, events, pulls_in)


def _read(metadata: JsonObject, key: str) -> str:
    return text_or_empty(metadata.get(key))
