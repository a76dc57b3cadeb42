"""Executions of a runner: start, log, result."""

from fastapi import Request
from pydantic import BaseModel

from exclave.api.bare import BareRunnerRoute
from exclave.api.credentials import DepsOf, RunnerOf
from exclave.api.ids import ExecutionOf, read_id
from exclave.api.queries import AppendOf
from exclave.api.requests import LIMITS, LimitedRequest, read_model
from exclave.api.routes import RunnerRoute, make_router
from exclave.base.json_values import Json
from exclave.control.dispatch import executions
from exclave.control.logs import logs
from exclave.domain.identity import RunnerIdentity
from exclave.domain.jobs import ExecutionId
from exclave.wire.runner import LogReply, Result, ResultReply, Start, StartReply

START = "/v1/executions/{execution}/start"
RESULT = "/v1/executions/{execution}/result"

router = make_router("/v1/executions/{execution}", "executions", RunnerRoute)
described = make_router("/v1/executions/{execution}", "executions", RunnerRoute)
"""The bare routes for the OpenAPI document; they are never served."""

_ZSTD: dict[str, Json] = {
    "requestBody": {
        "required": True,
        "description": "Exactly one zstd frame of whole records, up to 1 MiB when unpacked.",
        "content": {"application/zstd": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@described.post("/start")
async def start_execution(
    execution: ExecutionOf, request: Start, who: RunnerOf, deps: DepsOf
) -> StartReply:
    """Request permission to start. 409 `superseded` means: it is not yours, do nothing."""
    return await executions.start_execution(deps, who, execution, request)


@router.post("/log", openapi_extra=_ZSTD)
async def append_log(
    execution: ExecutionOf, query: AppendOf, who: RunnerOf, deps: DepsOf, request: Request
) -> LogReply:
    """Append a piece. 409 `log_offset` says where the stream continues, 413 `log_full`: stop."""
    body = await request.body()
    return await logs.append_log(deps, who, execution, query.epoch, query.offset, body)


@described.post("/result")
async def hand_in_result(
    execution: ExecutionOf, request: Result, who: RunnerOf, deps: DepsOf
) -> ResultReply:
    """Store the outcome. It may be sent again; 409 `superseded` means: too late."""
    return await executions.hand_in(deps, who, execution, request)


class StartRoute(BareRunnerRoute):
    """Permission to start an execution."""

    async def answer(self, request: LimitedRequest, who: RunnerIdentity) -> BaseModel | None:
        """Permit the execution to start."""
        body = await read_model(request, Start)
        return await executions.start_execution(self.deps, who, _find_id(request), body)


class ResultRoute(BareRunnerRoute):
    """The outcome of an execution."""

    limit = LIMITS[RESULT]

    async def share_loop(self, request: LimitedRequest, who: RunnerIdentity) -> BaseModel | None:
        """Run the request when the org has a slot and loop time left: results may be large.

        A runner keeps a result, and renews its execution, until it is acknowledged.
        """

        async def answer() -> BaseModel | None:
            async with self.deps.loop_slots.hold(who.org, "vital"):
                return await self.answer(request, who)

        body = len(await request.body())
        return await self.deps.loop_shares.run(who.org, RESULT, answer, body=body)

    async def answer(self, request: LimitedRequest, who: RunnerIdentity) -> BaseModel | None:
        """Store the outcome."""
        result = await read_model(request, Result)
        return await executions.hand_in(self.deps, who, _find_id(request), result)


def _find_id(request: Request) -> ExecutionId:
    return ExecutionId(read_id(request.path_params["execution"]))
