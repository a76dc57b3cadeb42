"""Files that executions upload: plan files, readable plans, journals, rescued states."""

from collections.abc import AsyncIterable, AsyncIterator

from exclave.base.errors import InvalidInput, NotFound, TooLarge
from exclave.control.deps import Deps
from exclave.control.limits import quotas
from exclave.control.limits.measured_stream import Measured, stream_bytes
from exclave.control.workflows.jobs import find_job
from exclave.control.workflows.plan_documents import tidy_plan
from exclave.domain.attachments import Attachment, NewAttachment
from exclave.domain.identity import OrgId, Right, RunnerIdentity, User
from exclave.domain.jobs import ExecutionId, JobId, Superseded
from exclave.domain.quotas import QuotaExceeded, Stored
from exclave.storage import attachments, executions, usage
from exclave.storage.engine.database import Tx
from exclave.storage.usage import Account, Amount
from exclave.wire.states import MAX_ATTACHMENT, MAX_FILE
from exclave.wire.terraform import AttachmentReply

EVIDENCE = frozenset({"journal.jsonl", "errored.tfstate.sealed"})
"""What a runner may hand in even when its execution is over: it tells what was done."""
_PLAN_S = 10.0
"""How long the check of one plan may take."""
_SMALL_PLAN = 32 << 10
"""Bytes of a plan that are checked in a few milliseconds, right here."""


async def put_attachment(
    deps: Deps,
    who: RunnerIdentity,
    execution: ExecutionId,
    name: str,
    epoch: int,
    chunks: AsyncIterable[bytes],
) -> AttachmentReply:
    """Store a file of a running execution: first the blob, then its row, which replaces others."""
    row = await deps.db.read(lambda tx: executions.find_execution(tx, who.org, execution))
    if row is None or row.runner_id != who.runner or row.started_at is None:
        raise NotFound("there is no such execution")
    if name == "plan.json":
        chunks = stream_bytes(await _tidy_plan(deps, who, chunks))
    blob = f"attachments/{who.org}/{execution}/{deps.ids.new('att')}"
    file = Measured(chunks, MAX_FILE)
    await deps.blobs.put_stream(blob, file)
    new = NewAttachment(name, who.queue, file.digest, file.size, blob)

    def index(tx: Tx) -> str | None:
        old = attachments.find_attachment(tx, who.org, execution, name)
        fenced = name not in EVIDENCE
        if row.epoch != epoch or not attachments.put_attachment(
            tx, who.org, who.runner, (execution, epoch), new, fenced=fenced
        ):
            raise Superseded(f"execution {execution} may no longer hand in `{name}`")
        _count(tx, deps, who.org, execution, name, file.size, old)
        return None if old is None else old.blob

    try:
        replaced = await deps.db.write(index, key=who.queue)
    except (Superseded, QuotaExceeded, TooLarge):
        await deps.blobs.delete(blob)
        raise
    if replaced is not None:
        await deps.blobs.delete(replaced)
    return AttachmentReply(name=name, digest=file.digest, size=file.size)


async def _tidy_plan(deps: Deps, who: RunnerIdentity, chunks: AsyncIterable[bytes]) -> bytes:
    """Validate a readable plan, since a runner wrote it; a large one in a worker process."""
    data = b"".join([chunk async for chunk in Measured(chunks, MAX_ATTACHMENT)])
    try:
        if len(data) <= _SMALL_PLAN:
            return tidy_plan(data)
        return await deps.workers.run(who.org, tidy_plan, data, seconds=_PLAN_S)
    except ValueError as error:
        raise InvalidInput(f"`plan.json` is not a plan document: {error}") from error


def _count(
    tx: Tx,
    deps: Deps,
    org: OrgId,
    execution: ExecutionId,
    name: str,
    size: int,
    old: Attachment | None,
) -> None:
    """Count a stored file against the quota, less the one it replaces; never refuse evidence."""
    if old is not None:
        quotas.release(tx, org, Stored.ATTACHMENTS, old.size, 1)
    if name in EVIDENCE:
        usage.add_usage(tx, Account(org, Stored.ATTACHMENTS), Amount(size, 1))
        return
    most = deps.quotas.attachments_per_execution_bytes
    if most and attachments.sum_sizes(tx, org, execution) > most:
        raise TooLarge(f"the files of an execution have {most} bytes at most", limit=most)
    quotas.reserve(tx, deps, org, Stored.ATTACHMENTS, size, 1)


async def get_for_runner(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, name: str
) -> AsyncIterator[bytes]:
    """Return the content of a file that any execution of the runner's own queue uploaded."""

    def find(tx: Tx) -> Attachment:
        row = attachments.find_attachment(tx, who.org, execution, name)
        if row is None or row.queue_id != who.queue:
            raise NotFound(f"the execution handed in no `{name}`")
        return row

    row = await deps.db.read(find)
    return deps.blobs.read(row.blob)


async def get_for_user(deps: Deps, user: User, job: JobId, name: str) -> AsyncIterator[bytes]:
    """Return the newest file of a job, of those that users may read."""

    def find(tx: Tx) -> Attachment:
        job_row = find_job(tx, user, job, Right.READ)
        for execution in reversed(executions.list_of_job(tx, user.org, job_row.id)):
            row = attachments.find_attachment(tx, user.org, execution.id, name)
            if row is not None:
                return row
        raise NotFound(
            f"the job has no `{name}`",
            hint="Only jobs that plan a deployment have one, once they got that far.",
        )

    row = await deps.db.read(find)
    return deps.blobs.read(row.blob)
