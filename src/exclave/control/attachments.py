"""Files that executions hand in: plans to apply, plans to read, journals, rescued states."""

from collections.abc import AsyncIterable, AsyncIterator

from exclave.base.errors import NotFound
from exclave.control.deps import Deps
from exclave.control.jobs import find_job
from exclave.control.measuring import Measured
from exclave.domain.identity import Right, RunnerIdentity, User
from exclave.domain.jobs import ExecutionId, JobId, Superseded
from exclave.storage import attachments, executions
from exclave.storage.database import AnyRow, Tx
from exclave.wire.terraform import MAX_ATTACHMENT, AttachmentReply

EVIDENCE = frozenset({"journal.jsonl", "errored.tfstate.sealed"})
"""What a runner may hand in even when its execution is over: it tells what was done."""


async def put_attachment(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, name: str, epoch: int,
    chunks: AsyncIterable[bytes],
) -> AttachmentReply:  # fmt: skip
    """Store a file of a running execution: first the blob, then its row; the newest one counts."""
    row = await deps.db.read(lambda tx: executions.find_execution(tx, who.org, execution))
    if row is None or row.runner_id != who.runner or row.started_at is None:
        raise NotFound("there is no such execution")
    blob = f"attachments/{who.org}/{execution}/{deps.ids.new('att')}"
    file = Measured(chunks, MAX_ATTACHMENT)
    await deps.blobs.put_stream(blob, file)
    values = {"queue_id": who.queue, "digest": file.digest, "size": file.size, "blob": blob}

    def index(tx: Tx) -> str | None:
        old = attachments.find_attachment(tx, who.org, execution, name)
        fenced = name not in EVIDENCE
        if row.epoch != epoch or not attachments.put_attachment(
            tx, who.org, who.runner, (execution, epoch), name, values, fenced=fenced
        ):
            raise Superseded(f"execution {execution} may no longer hand in `{name}`")
        return None if old is None else str(old.blob)

    try:
        replaced = await deps.db.write(index, key=who.queue)
    except Superseded:
        await deps.blobs.delete(blob)
        raise
    if replaced is not None:
        await deps.blobs.delete(replaced)
    return AttachmentReply(name=name, digest=file.digest, size=file.size)


async def get_for_runner(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, name: str
) -> AsyncIterator[bytes]:
    """Find a file that any execution of the runner's own queue handed in; then read it."""

    def find(tx: Tx) -> AnyRow:
        row = attachments.find_attachment(tx, who.org, execution, name)
        if row is None or row.queue_id != who.queue:
            raise NotFound(f"the execution handed in no `{name}`")
        return row

    row = await deps.db.read(find)
    return deps.blobs.read(row.blob)


async def get_for_user(deps: Deps, user: User, job: JobId, name: str) -> AsyncIterator[bytes]:
    """Find the newest file of a job that people may see; then read it."""

    def find(tx: Tx) -> AnyRow:
        found = find_job(tx, user, job, Right.READ)
        for execution in reversed(executions.list_of_job(tx, user.org, JobId(found.id))):
            row = attachments.find_attachment(tx, user.org, ExecutionId(execution.id), name)
            if row is not None:
                return row
        raise NotFound(
            f"the job has no `{name}`", hint="Only Terraform jobs have one, once they got that far."
        )

    row = await deps.db.read(find)
    return deps.blobs.read(row.blob)
