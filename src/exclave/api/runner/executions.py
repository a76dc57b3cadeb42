"""What a runner tells about its executions."""

from typing import Any

from fastapi import Request

from exclave.api.credentials import DepsOf, RunnerOf
from exclave.api.ids import ExecutionOf
from exclave.api.queries import AppendOf
from exclave.api.routes import RunnerRoute, make_router
from exclave.control import executions, logs
from exclave.wire.runner import LogReply, Result, ResultReply, Start, StartReply

router = make_router("/v1/executions/{execution}", "executions", RunnerRoute)

_ZSTD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A zstd frame of whole records, up to 1 MiB when unpacked.",
        "content": {"application/zstd": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post("/start")
async def start_execution(
    execution: ExecutionOf, request: Start, who: RunnerOf, deps: DepsOf
) -> StartReply:
    """Ask for leave to begin. 409 `superseded` means: it is not yours, do nothing."""
    return await executions.start_execution(deps, who, execution, request)


@router.post("/log", openapi_extra=_ZSTD)
async def append_log(
    execution: ExecutionOf, query: AppendOf, who: RunnerOf, deps: DepsOf, request: Request
) -> LogReply:
    """Append a piece of log. 409 `log_offset` tells where the stream continues."""
    body = await request.body()
    return await logs.append_log(deps, who, execution, query.epoch, query.offset, body)


@router.post("/result")
async def hand_in_result(
    execution: ExecutionOf, request: Result, who: RunnerOf, deps: DepsOf
) -> ResultReply:
    """Hand in the outcome. The same again is fine; 409 `superseded` means: too late."""
    return await executions.hand_in(deps, who, execution, request)
