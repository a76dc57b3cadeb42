"""Sealed plans: handed in by the job that plans, fetched and verified by the job that applies."""

import hashlib
import hmac

from exclave.client.problems import RemoteProblem
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.jobs.executor import JobRun
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.sealing import Purpose, SealBroken, Sealer
from exclave.wire.jobs import Reason
from exclave.wire.plans import PlanDocument
from exclave.wire.spec_fields import PlanRef

_PLAN = "plan"
"""The purpose of an encrypted plan."""
_MISSING = 404


async def hand_in_plan(
    uplink: Uplink, sealer: Sealer, workspace: str, data: bytes, document: PlanDocument
) -> str:
    """Upload the encrypted plan and the readable document; return the digest of the plan."""
    purpose = Purpose(uplink.org_id, uplink.queue_id, workspace, _PLAN)
    await uplink.put_attachment("plan.sealed", sealer.seal(data, purpose))
    content = document.model_dump_json(by_alias=True).encode()
    await uplink.put_attachment("plan.json", content)
    return digest_plan(data)


async def fetch_plan(job: JobRun, sealer: Sealer, workspace: str, plan: PlanRef | None) -> bytes:
    """Fetch the plan that a job names and verify that it is the approved one."""
    if plan is None:
        raise WorkFailed(Reason.PLAN_MISSING, "the job names no plan")
    data = await open_plan(job.uplink, sealer, workspace, plan.execution_id)
    digest = digest_plan(data)
    for wanted in (plan.digest, job.dispatch.approved_digest or plan.digest):
        if not hmac.compare_digest(digest, wanted):
            message = f"the plan has the digest {digest}, but {wanted} was approved: plan again"
            raise WorkFailed(Reason.PLAN_MISSING, message)
    return data


async def open_plan(uplink: Uplink, sealer: Sealer, workspace: str, execution_id: str) -> bytes:
    """Fetch and decrypt the plan that an execution handed in."""
    try:
        sealed = await uplink.get_attachment(execution_id, "plan.sealed")
    except RemoteProblem as problem:
        if problem.status != _MISSING:
            raise
        message = "the approved plan is not there any more: plan again"
        raise WorkFailed(Reason.PLAN_MISSING, message) from problem
    try:
        return sealer.unseal(sealed, Purpose(uplink.org_id, uplink.queue_id, workspace, _PLAN))
    except SealBroken as problem:
        message = f"the approved plan cannot be trusted: {problem.message}. {problem.advice}"
        raise WorkFailed(Reason.PLAN_MISSING, message) from problem


def digest_plan(data: bytes) -> str:
    """Return the digest of a plan: the one that is approved."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
