"""Objects that hooks of a release made, and why one of them failed."""

from collections.abc import Sequence

from exclave.base.errors import Problem
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.records import Driver, ReleaseRecord, list_records
from exclave.runner.helm.rendered import read_release
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.rollouts.ready import check_ready
from exclave.runner.kube.rollouts.waiting import explain_unready
from exclave.runner.kube.rollouts.watching import Followed
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason


async def list_hook_objects(job: HelmContext, records: Sequence[ReleaseRecord]) -> list[ObjectId]:
    """Return what the hooks of these revisions make, whether or not it is there."""
    discovery = await job.client.discover()
    objects: dict[ObjectId, None] = {}
    for record in records:
        for hook in read_release(record.release).hooks:
            resource = discovery.find_any_version(hook.source.id.group, hook.source.id.kind)
            if resource is not None:
                place = hook.source.id.namespace or job.spec.namespace
                namespace = place if resource.namespaced else ""
                objects[hook.source.id._replace(version=resource.version, namespace=namespace)] = (
                    None
                )
    return list(objects)


async def explain_hook(job: HelmContext, driver: Driver, failure: WorkFailed) -> WorkFailed:
    """Return the failure of a hook with what its Job says: Helm only tells that it failed."""
    if failure.reason is not Reason.HOOK_FAILED:
        return failure
    try:
        lines = await _explain_jobs(job, driver)
    except Problem:
        return failure  # who may not look at Jobs and pods still gets Helm's sentence
    return WorkFailed(failure.reason, f"hook {'; hook '.join(lines)}") if lines else failure


async def _explain_jobs(job: HelmContext, driver: Driver) -> list[str]:
    records = await list_records(job.client, driver, job.spec.namespace, job.spec.release)
    lines: list[str] = []
    for object_id in await list_hook_objects(job, records[-1:]):
        live = await job.client.get(object_id) if object_id.kind == "Job" else None
        readiness = None if live is None else check_ready(live)
        if live is None or readiness is None or readiness.ready:
            continue
        unready = await explain_unready(job.client, Followed(object_id, live, readiness))
        for line in unready.log:
            job.context.log.system(f"{object_id.name}: {line}")
        lines.append(job.context.mask(unready.line))
    return lines
