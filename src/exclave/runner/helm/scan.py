"""Compare what was deployed with the cluster to find drift. Helm is not started."""

import asyncio
from dataclasses import replace

from exclave.runner.helm.compare import Compared
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.plan import hand_in, read_earlier, read_facts
from exclave.runner.helm.plan_meta import read_release_plan
from exclave.runner.helm.show import make_ignore_rules
from exclave.runner.kube.changes.compare import Comparison
from exclave.runner.kube.changes.describe import count_changes, describe_changes
from exclave.runner.kube.changes.ignoring import IgnoreRules
from exclave.runner.kube.changes.model import ObjectChange
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.sealed_plans import open_plan
from exclave.wire.jobs import Reason
from exclave.wire.plans import PlanDocument
from exclave.wire.runner import Outcome


async def scan_release(job: HelmContext) -> Outcome:
    """Compare the deployed content with live objects; random values cannot drift that way."""
    facts = await read_facts(job)
    mark = facts.state.plan
    if mark is None or not mark.execution:
        raise WorkFailed(Reason.PLAN_MISSING, "nothing was deployed yet: deploy the part first")
    data = await open_plan(job.context.job.uplink, job.sealer, job.spec.workspace, mark.execution)
    deployed = await asyncio.to_thread(read_earlier, data)
    comparison = Comparison(job.client, job.owner, quiet_managers=frozenset({"helm"}))
    ignore = make_ignore_rules(job, deployed.objects)
    compared_objects = [
        drop_noise(change, ignore) for change in await comparison.compare_all(deployed.objects)
    ]
    changes = [change for change in compared_objects if change.action != "no-op"]
    resources = describe_changes(changes, job.context.mask, module=job.spec.release, ignore=ignore)
    document = PlanDocument(
        tool="helm", resources=resources, drift=resources, summary=count_changes(resources)
    )
    compared = Compared(deployed.objects, changes)
    release = replace(read_release_plan(deployed), revision=facts.revision, recovery=facts.recovery)
    return await hand_in(job, facts, compared, release, document)


def drop_noise(change: ObjectChange, ignore: IgnoreRules) -> ObjectChange:
    """Return a change without fields that do not count as drift; None if no others are left."""
    if change.action != "update":
        return change
    fields = [
        entry for entry in change.fields if not ignore.ignores(change.id, entry.path, change.live)
    ]
    return replace(change, fields=fields, action="update" if fields else "no-op")
