"""`exclave builds`: builds of an app's components."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import click

from exclave.base.errors import Conflict
from exclave.cli.deps import Session, verb
from exclave.cli.inputs import build as build_model
from exclave.cli.logs import print_log
from exclave.cli.lookup import gather, page_options
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.cli.sboms import fetch_sbom
from exclave.cli.terminal import clean_line
from exclave.cli.workflows.watch import watch_workflow
from exclave.wire.builds import BuildReply, BuildState, NewBuild
from exclave.wire.images import ImageSource
from exclave.wire.model import Page
from exclave.wire.specs import ChartSource, GitSource

group = SuggestingGroup("builds", help="Manage builds: the artifacts of an app's components.")

_FAILED = 1
_SHORT = 12


@verb(group, "list")
@click.option("--app", metavar="NAME", help="Only show builds of this app.")
@click.option(
    "--part", metavar="PART", help="Only show builds of this component, `sandbox` or action step."
)
@click.option(
    "--state",
    type=click.Choice([state.value for state in BuildState]),
    help="Only show builds in this state.",
)
@page_options
async def list_builds(
    session: Session,
    app: str | None,
    part: str | None,
    state: str | None,
    limit: int,
    cursor: str | None,
) -> None:
    """List builds, newest first."""

    async def fetch(at: str | None, most: int) -> Page[BuildReply]:
        return await session.client.builds.list(at, most, app=app, part=part, state=state)

    page = await gather(session, fetch, limit, cursor)
    rows = [
        [
            item.id,
            item.app,
            item.part,
            item.state,
            ", ".join(map(str, item.configs)),
            item.commit[:_SHORT],
            item.digest[: len("sha256:") + _SHORT],
            show_time(item.created_at),
            item.error,
        ]
        for item in page.items
    ]
    headers = ["ID", "APP", "PART", "STATE", "VERSIONS", "COMMIT", "DIGEST", "CREATED", "ERROR"]
    session.out.show(page, session.out.table(headers, rows))


@verb(group, "get")
@click.argument("build_id", metavar="ID")
async def get(session: Session, build_id: str) -> None:
    """Show a build: its source, and its artifact or its error."""
    _show(session, await session.client.builds.get(build_id))


@verb(group, "sbom")
@click.argument("build_id", metavar="ID")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the document to this file instead.",
)
async def download_sbom(session: Session, build_id: str, output: Path | None) -> None:
    """Print the bill of materials (SPDX, JSON) of an image or a chart that was built."""
    build = await session.client.builds.get(build_id)
    data = await fetch_sbom(session, build)
    if output is None:
        session.out.show(json.loads(data), data.decode())
        return
    await asyncio.to_thread(output.write_bytes, data)
    session.out.show({"id": build.id, "file": str(output), "bytes": len(data)}, "")
    if not session.out.json_mode:
        session.out.say(f"Wrote {len(data)} bytes to {output}.")


@verb(group, "logs")
@click.argument("build_id", metavar="ID")
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the build ends.")
@click.option(
    "--lines", "-n", type=click.IntRange(0), help="Number of lines to print, counted from the end."
)
@click.option("--times", is_flag=True, help="Prefix each line with its time.")
async def logs(
    session: Session, build_id: str, lines: int | None, *, follow: bool, times: bool
) -> None:
    """Print the log of a build; with --json one record per line."""
    build = await session.client.builds.get(build_id)
    if build.job_id is None:
        raise Conflict("the build has no job", hint="Start it again: exclave builds create.")
    await print_log(session, build.job_id, lines=lines, follow=follow, times=times)


@verb(group, "create")
@click.argument("app")
@click.argument("part")
@click.option("--commit", metavar="SHA", help="Commit to build instead of the newest one.")
@click.option("--wait", is_flag=True, help="Wait for the build to end; exit with 1 if it fails.")
async def create(
    session: Session, app: str, part: str, commit: str | None, *, wait: bool
) -> int | None:
    """Build PART of APP's current version again: a component, `sandbox`, or `action:NAME:STEP`.

    Branches and tags are resolved again. The current version uses the build once it has succeeded.
    """
    body = build_model(NewBuild, app=app, part=part, commit=commit)
    made = await session.client.builds.create(body)
    if not wait:
        session.out.show(made, made.id)
        if not session.out.json_mode:
            session.out.say(f"Started. Follow it: exclave builds logs {made.id} --follow")
        return None
    await _await_end(session, made)
    ended = await session.client.builds.get(made.id)
    _show(session, ended)
    return None if ended.state is BuildState.SUCCEEDED else _FAILED


async def _await_end(session: Session, made: BuildReply) -> None:
    """Wait for the end of a build; show its progress unless the output is JSON."""
    if made.workflow_id is None:
        return
    if not session.out.json_mode:
        await watch_workflow(session, made.workflow_id)
        return
    async for _ in session.client.workflows.follow(made.workflow_id, session.out.warn):
        pass


def _show(session: Session, build: BuildReply) -> None:
    pairs = [
        ("id", build.id),
        ("app", build.app),
        ("part", build.part),
        ("state", build.state),
        ("error", build.error),
        ("policies", "\n".join(_show_findings(build))),
        ("source", _show_source(build)),
        ("commit", build.commit),
        ("artifact", f"{build.repository}@{build.digest}" if build.digest else ""),
        ("size", f"{build.size} bytes" if build.size else ""),
        ("provenance", build.provenance),
        ("versions", ", ".join(map(str, build.configs))),
        ("workflow", build.workflow_id or ""),
        ("job", build.job_id or ""),
        ("created", f"{show_time(build.created_at)} by {build.created_by}"),
        ("finished", show_time(build.finished_at)),
    ]
    session.out.show(build, session.out.details(pairs))


def _show_findings(build: BuildReply) -> Iterator[str]:
    for finding in build.policies:
        yield f"{finding.level} {clean_line(finding.name)}: {clean_line(finding.message)}"


def _show_source(build: BuildReply) -> str:
    source = build.source
    if isinstance(source, GitSource):
        return f"{source.url} {source.ref}, folder {source.directory}"
    if isinstance(source, ChartSource):
        return f"{source.url}, chart {source.chart} {source.version}".rstrip()
    if isinstance(source, ImageSource):
        return f"image {source.image} {source.tag or source.update_policy}".rstrip()
    return f"the app directory, folder {source.directory}"
