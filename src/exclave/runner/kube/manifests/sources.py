"""Where the objects of a plan come from: a text, an artifact, or what was planned before."""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from exclave.base.json_values import JsonObject
from exclave.runner.jobs.placeholders import Filler
from exclave.runner.kube.api.objects import ObjectsRefused, SourceObject, identify, read_objects
from exclave.runner.kube.api.yaml_reader import YamlRefused
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.changes.plan_file import PlanFile, read_plan_file
from exclave.runner.kube.changes.reading import list_made_kinds, place_objects
from exclave.runner.kube.images import pin_images
from exclave.runner.kube.manifests.context import ManifestContext
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.reviews import list_secret_values
from exclave.runner.plans.sealed_plans import digest_plan, open_plan
from exclave.wire.jobs import JsonValue, Reason


class PlanSource(NamedTuple):
    """What is wanted, with the marks of its owner, and which kinds it makes itself."""

    digest: str
    wanted: Sequence[WantedObject]
    new_kinds: frozenset[tuple[str, str, str]] = frozenset()
    outside_images: Sequence[str] = ()
    """Images of theirs that no component of the app provides."""


async def read_source(job: ManifestContext, text: str, filler: Filler) -> PlanSource:
    """Return the objects of a text, with placeholders filled in after it was parsed."""
    try:
        sources = await asyncio.to_thread(read_objects, text)
        filled = [_fill(source, filler) for source in sources]
        discovery = await job.client.discover()
        placed = place_objects(filled, discovery, job.spec.namespace)
    except (ObjectsRefused, YamlRefused) as refused:
        raise WorkFailed(Reason.OBJECT_REFUSED, refused.message) from refused
    hide_secrets(job, [wanted.value for wanted in placed])
    images = pin_images(
        [wanted.value for wanted in placed],
        job.spec.images,
        pull_secret=job.pull_secrets.name,
    )
    marked = [
        WantedObject(wanted.id, job.owner.mark(value))
        for wanted, value in zip(placed, images.objects, strict=True)
    ]
    made = frozenset(tuple(kind[:3]) for kind in list_made_kinds(filled))
    digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    kinds = cast("frozenset[tuple[str, str, str]]", made)
    return PlanSource(digest, marked, kinds, images.list_outside())


async def reopen_plan(job: ManifestContext, execution_id: str, digest: str) -> PlanFile:
    """Return an earlier plan of this part, verified by its digest."""
    data = await open_plan(job.context.job.uplink, job.sealer, job.spec.workspace, execution_id)
    if digest_plan(data) != digest:
        message = "the plan that was deployed is not the one that is stored: deploy again"
        raise WorkFailed(Reason.PLAN_MISSING, message)
    plan = read_plan(data)
    hide_secrets(job, [wanted.value for wanted in plan.objects])
    return plan


def read_plan(data: bytes) -> PlanFile:
    """Return the plan in unsealed bytes."""
    try:
        return read_plan_file(data)
    except ValueError as error:
        raise WorkFailed(Reason.PLAN_MISSING, f"{error}: plan again") from error


def _fill(source: SourceObject, filler: Filler) -> SourceObject:
    filled = filler.fill_json(cast("JsonValue", source.value))
    value = cast("JsonObject", filled)
    return SourceObject(source.document, source.line, identify(value), value)


def hide_secrets(job: ManifestContext, values: Iterable[JsonObject]) -> None:
    """Mask the values of Secrets wherever they might be printed."""
    job.context.log.hide(list_secret_values(values))
