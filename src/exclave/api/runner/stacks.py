"""Stacks: downloads by code, and their reports."""

from typing import Annotated

from fastapi import Path, Response
from fastapi.responses import PlainTextResponse

from exclave.api.credentials import DepsOf, RunnerOf
from exclave.api.routes import PublicRoute, RunnerRoute, make_router
from exclave.control.stacks import stacks
from exclave.wire.model import Request
from exclave.wire.stacks import Resigned, StackReport, StackTerms

public = make_router("/v1/stacks", "stacks", PublicRoute)
router = make_router("/v1/stack", "stacks", RunnerRoute)

CodeOf = Annotated[str, Path(max_length=200, description="The one-time code, `xcs_…`.")]
FileOf = Annotated[str, Path(max_length=200)]


@public.get("/{code}/local.py", response_class=PlainTextResponse)
async def fetch_script(code: CodeOf, deps: DepsOf) -> PlainTextResponse:
    """Return the script of a Stack; until its runner has enrolled, each time with a new token."""
    return PlainTextResponse(await stacks.fetch_script(deps, code), media_type="text/x-python")


@public.get("/package/{file}", response_class=Response)
async def fetch_package(file: FileOf) -> Response:
    """Return the runner package that the script names by its hash."""
    return Response(stacks.find_package(file).data, media_type="application/zip")


@router.post("/report")
async def report_stack(report: StackReport, who: RunnerOf, deps: DepsOf) -> StackTerms:
    """Report facts, names of secrets and inputs of the customer. Returns what the app requires."""
    return await stacks.report_stack(deps, who, report)


@router.post("/resign")
async def resign_runner(_: Request, who: RunnerOf, deps: DepsOf) -> Resigned:
    """Close the runner's identity, when the customer removes the Stack."""
    return await stacks.resign_runner(deps, who)
