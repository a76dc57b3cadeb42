"""Stacks: files that customers fetch with a code, and reports of running Stacks."""

from typing import Annotated

from fastapi import Path, Request, Response
from fastapi.responses import FileResponse, PlainTextResponse

from exclave.api.credentials import DepsOf, RunnerOf
from exclave.api.ids import InstallOf
from exclave.api.routes import PublicRoute, RunnerRoute, make_router
from exclave.control.deps import Deps
from exclave.control.stacks import (
    cloud_page,
    cloud_reports,
    cloud_views,
    program_archives,
    program_offers,
    stacks,
)
from exclave.wire.model import Request as EmptyRequest
from exclave.wire.stacks import (
    Leaving,
    ProgramOffer,
    Resigned,
    StackProgress,
    StackReport,
    StackTerms,
)

public = make_router("/v1/stacks", "stacks", PublicRoute)
beacons = make_router("/v1/stack", "stacks", PublicRoute)
router = make_router("/v1/stack", "stacks", RunnerRoute)

_OF_PORTAL = "azure.json"
"""The file that the portal of Azure loads in the customer's browser."""
CodeOf = Annotated[
    str, Path(max_length=200, description="The one-time code `xcs_…`, or that of a link, `xcv_…`.")
]
FileOf = Annotated[str, Path(max_length=200)]
PathOf = Annotated[
    str, Path(max_length=200, description="The name of the file, which may begin with folders.")
]


# Before the route with a code: the first route that matches is used.
@public.get("/package/{file}", response_class=Response)
async def fetch_package(file: FileOf, deps: DepsOf) -> Response:
    """Fetch the runner program; the files of a Stack name it and its hash."""
    if program_archives.ARCHIVE.fullmatch(file):
        path = program_archives.find_archive(deps, file)
        return FileResponse(path, media_type="application/gzip")
    return Response(stacks.find_package(file).data, media_type="application/zip")


@beacons.post("/progress/{install}", status_code=204)
async def note_progress(install: InstallOf, progress: StackProgress, deps: DepsOf) -> None:
    """Note what a machine says before it can prove anything; it is shown, and nothing else.

    The answer is the same for an install that does not exist.
    """
    await cloud_reports.note_progress(deps, install, progress)


@public.get("/{code}/{file:path}", response_class=Response)
async def fetch_file(code: CodeOf, file: PathOf, request: Request, deps: DepsOf) -> Response:
    """Fetch a file of a Stack.

    With a one-time code: each time with a new token, until its runner has enrolled. With the code
    of a link: the customer's page if there is no file, else a file of a version (`3/aws.json`, or
    `latest/aws.json`), and its detached signature if the name ends with `.sig`.
    """
    if cloud_views.is_view(code):
        return await _show_cloud_file(code, file, request, deps)
    content = await stacks.fetch_file(deps, code, file)
    return PlainTextResponse(content.content, media_type=content.media_type)


async def _show_cloud_file(code: str, file: str, request: Request, deps: Deps) -> Response:
    address = request.client.host if request.client else ""
    if not file:
        page = await cloud_views.show_page(deps, code, address)
        policy = {"content-security-policy": cloud_page.POLICY}
        return Response(page.data, media_type=page.media_type, headers=policy)
    which, _, name = file.partition("/")
    served = await cloud_views.fetch_file(deps, code, which, name, address)
    headers = _list_headers(served, name)
    if served.etag and request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(served.data, media_type=served.media_type, headers=headers)


def _list_headers(served: cloud_views.Served, name: str) -> dict[str, str]:
    """Return how a file may be cached, and that the portal of Azure may read its template."""
    headers = {"cache-control": "no-cache"}
    if served.etag:
        headers["etag"] = f'"{served.etag}"'
    if served.is_final:
        headers["cache-control"] = "private, max-age=31536000, immutable"
    if name == _OF_PORTAL:
        headers["access-control-allow-origin"] = "https://portal.azure.com"
    return headers


@router.post("/report")
async def report_stack(report: StackReport, who: RunnerOf, deps: DepsOf) -> StackTerms:
    """Report facts, names of secrets and the customer's inputs. Returns what the app requires."""
    return await stacks.report_stack(deps, who, report)


@router.get("/program")
async def offer_program(_: RunnerOf, deps: DepsOf) -> ProgramOffer:
    """Return the program that runners in clouds should run, signed with the key of their jobs."""
    return await program_offers.offer_program(deps)


@router.post("/leaving", status_code=204)
async def note_leaving(leaving: Leaving, who: RunnerOf, deps: DepsOf) -> None:
    """Note that the machine of the runner goes, and why; another one usually takes its place."""
    await cloud_reports.note_leaving(deps, who, leaving)


@router.post("/resign")
async def resign_runner(_: EmptyRequest, who: RunnerOf, deps: DepsOf) -> Resigned:
    """Close the runner's identity: the customer removes the Stack."""
    return await stacks.resign_runner(deps, who)
