"""Stacks: files that customers fetch with a code, and reports of running Stacks."""

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
PathOf = Annotated[
    str, Path(max_length=200, description="The name of the file, which may begin with folders.")
]


# Before the route with a code: the first route that matches is used.
@public.get("/package/{file}", response_class=Response)
async def fetch_package(file: FileOf) -> Response:
    """Fetch the runner program; the files of a Stack name it and its hash."""
    return Response(stacks.find_package(file).data, media_type="application/zip")


@public.get("/{code}/{file:path}", response_class=PlainTextResponse)
async def fetch_file(code: CodeOf, file: PathOf, deps: DepsOf) -> PlainTextResponse:
    """Fetch a file of a Stack; each time with a new token, until its runner has enrolled."""
    content = await stacks.fetch_file(deps, code, file)
    return PlainTextResponse(content.content, media_type=content.media_type)


@router.post("/report")
async def report_stack(report: StackReport, who: RunnerOf, deps: DepsOf) -> StackTerms:
    """Report facts, names of secrets and the customer's inputs. Returns what the app requires."""
    return await stacks.report_stack(deps, who, report)


@router.post("/resign")
async def resign_runner(_: Request, who: RunnerOf, deps: DepsOf) -> Resigned:
    """Close the runner's identity: the customer removes the Stack."""
    return await stacks.resign_runner(deps, who)
