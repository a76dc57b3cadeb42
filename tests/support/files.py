"""Files and Terraform states of executions as bytes, for tests that need no streams."""

from collections.abc import AsyncIterator

from exclave.control.deps import Deps
from exclave.control.limits.measured_stream import stream_bytes
from exclave.control.terraform import states
from exclave.control.workflows import attachments
from exclave.domain.identity import RunnerIdentity, User
from exclave.domain.jobs import ExecutionId, JobId
from exclave.wire.states import SealedState, StateReply
from exclave.wire.terraform import AttachmentReply


async def collect(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


async def put_file(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, name: str, epoch: int, data: bytes
) -> AttachmentReply:
    return await attachments.put_attachment(deps, who, execution, name, epoch, stream_bytes(data))


async def get_file(deps: Deps, who: RunnerIdentity, execution: ExecutionId, name: str) -> bytes:
    return await collect(await attachments.get_for_runner(deps, who, execution, name))


async def get_job_file(deps: Deps, user: User, job: JobId, name: str) -> bytes:
    return await collect(await attachments.get_for_user(deps, user, job, name))


async def put_state(
    deps: Deps,
    who: RunnerIdentity,
    execution: ExecutionId,
    epoch: int,
    workspace: str,
    lock_id: str,
    state: SealedState,
) -> StateReply:
    return await states.write_state(
        deps, who, execution, epoch, workspace, lock_id, state.header, stream_bytes(state.sealed)
    )


async def get_state(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, epoch: int, workspace: str
) -> SealedState | None:
    found = await states.read_state(deps, who, execution, epoch, workspace)
    if found is None:
        return None
    header, chunks = found
    return SealedState(header=header, sealed=await collect(chunks))
