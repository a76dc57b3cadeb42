"""Terraform states of a running execution: sealed bytes behind one line of header."""

from collections.abc import AsyncIterator

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from exclave.api.credentials import DepsOf, RunnerOf
from exclave.api.ids import ExecutionOf
from exclave.api.queries import EpochOf, StateOf, StateWriteOf
from exclave.api.routes import RunnerRoute, make_router
from exclave.base.errors import InvalidInput
from exclave.base.json_values import Json
from exclave.control.installs import sensitive_inputs
from exclave.control.terraform import states
from exclave.wire.states import (
    MAX_HEADER,
    LockState,
    StateHeader,
    StateReply,
    UnlockState,
    unpack_state,
)
from exclave.wire.terraform import SensitiveValues

router = make_router("/v1/executions/{execution}", "states", RunnerRoute)

_BYTES = {"schema": {"type": "string", "format": "binary"}}
_SEALED: dict[str, Json] = {
    "requestBody": {
        "required": True,
        "description": "One line of JSON (the header), then the sealed bytes.",
        "content": {"application/octet-stream": _BYTES},
    }
}


@router.get(
    "/state",
    response_class=Response,
    responses={
        200: {"content": {"application/octet-stream": _BYTES}, "description": "The newest state."},
        204: {"description": "There is no state yet."},
    },
)
async def read_state(
    execution: ExecutionOf, query: StateOf, who: RunnerOf, deps: DepsOf
) -> Response:
    """Return the newest state of a workspace of the runner's install."""
    state = await states.read_state(deps, who, execution, query.epoch, query.workspace)
    if state is None:
        return Response(status_code=204)
    return StreamingResponse(join_state(*state), media_type="application/octet-stream")


@router.post("/state", openapi_extra=_SEALED)
async def write_state(
    execution: ExecutionOf, query: StateWriteOf, who: RunnerOf, deps: DepsOf, request: Request
) -> StateReply:
    """Store a version. 409 `superseded`, `lock_held` or `state_refused`: nothing was stored."""
    header, sealed = await split_state(request.stream())
    return await states.write_state(
        deps, who, execution, query.epoch, query.workspace, query.lock_id, header, sealed
    )


@router.post("/state/lock", status_code=204)
async def lock_state(execution: ExecutionOf, body: LockState, who: RunnerOf, deps: DepsOf) -> None:
    """Lock a workspace. 409 `lock_held` says who has it."""
    await states.lock_state(deps, who, execution, body)


@router.post("/state/unlock", status_code=204)
async def unlock_state(
    execution: ExecutionOf, body: UnlockState, who: RunnerOf, deps: DepsOf
) -> None:
    """Unlock a workspace."""
    await states.unlock_state(deps, who, execution, body)


@router.get("/sensitive")
async def get_sensitive(
    execution: ExecutionOf, query: EpochOf, who: RunnerOf, deps: DepsOf
) -> SensitiveValues:
    """Return the sensitive inputs that the specification of the execution's job names."""
    return await sensitive_inputs.get_sensitive(deps, who, execution, query.epoch)


async def join_state(header: StateHeader, sealed: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the header as one line, then the sealed bytes."""
    yield header.write_line()
    async for chunk in sealed:
        yield chunk


async def split_state(
    chunks: AsyncIterator[bytes],
) -> tuple[StateHeader, AsyncIterator[bytes]]:
    """Return the header, and the stream of sealed bytes that follows it."""
    line, end = bytearray(), -1
    async for chunk in chunks:
        line += chunk
        end = line.find(b"\n")
        if end >= 0 or len(line) > MAX_HEADER:
            break
    try:
        header = unpack_state(bytes(line[: end + 1])).header
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    return header, _continue(bytes(line[end + 1 :]), chunks)


async def _continue(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk
