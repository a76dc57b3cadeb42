"""`exclave logs`: read and search the logs of jobs."""

from collections import deque
from datetime import UTC, datetime

import click

from exclave.cli.deps import Session, verb
from exclave.cli.lookup import build_option, find_queue, install_option, print_rest
from exclave.cli.root import SuggestingGroup
from exclave.cli.terminal import Styled, clean_line, join
from exclave.client.control import ControlClient
from exclave.client.following import BEGIN, LogPosition
from exclave.wire.logs import LogMatch, LogMatches, LogRecord, Stream

group = SuggestingGroup("logs", help="Read and search the logs of jobs.")


@verb(group, "tail")
@click.argument("job_id", metavar="JOB")
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the job ends.")
@click.option(
    "--lines", "-n", type=click.IntRange(0), help="Number of lines to print, counted from the end."
)
@click.option(
    "--execution",
    metavar="ID",
    help="ID of the execution to read.  [default: the newest that has started]",
)
@click.option("--times", is_flag=True, help="Prefix each line with its time.")
async def tail(
    session: Session,
    job_id: str,
    lines: int | None,
    execution: str | None,
    *,
    follow: bool,
    times: bool,
) -> None:
    """Print the log of a job; with --json one record per line."""
    start = LogPosition(execution) if execution else BEGIN
    await print_log(session, job_id, start, lines=lines, follow=follow, times=times)


@verb(group, "search")
@click.argument("text")
@click.option("--job", metavar="ID", help="Only search the log of this job.")
@install_option
@build_option
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="Maximum number of matches to show.",
)
@click.option("--cursor", help="Continue an earlier search at its cursor.")
async def search(
    session: Session,
    text: str,
    job: str | None,
    install: str | None,
    limit: int,
    cursor: str | None,
    *,
    build: bool,
) -> None:
    """Search the log of a job, or of all jobs of an install."""
    queue_id = await find_queue(session, install, build=build)
    if (job is None) == (queue_id is None):
        raise click.UsageError("pass --job ID, --install NAME or --build")
    matches: list[LogMatch] = []
    while True:
        page = await _search_page(session.client, text, job, queue_id, cursor)
        matches += page.items
        cursor = page.next
        if cursor is None or len(matches) >= limit:
            break
    print_rest(session, cursor, empty=not matches)
    lines = [
        clean_line(f"{match.job_id} {match.step or '-'}: ") + show_record(session, match.record)
        for match in matches
    ]
    session.out.show(LogMatches(items=matches, next=cursor), join(lines))


async def print_log(
    session: Session,
    job_id: str,
    start: LogPosition = BEGIN,
    *,
    lines: int | None,
    follow: bool,
    times: bool,
) -> None:
    """Print the log of a job or its last lines, and optionally follow it."""
    if lines is not None or not follow:
        start = await _print_present(session, job_id, start, lines, times=times)
    if follow:
        async for record in session.client.logs.follow(job_id, start, session.out.warn):
            session.out.stream(record, show_record(session, record, times=times))


def show_record(session: Session, record: LogRecord, *, times: bool = False) -> Styled:
    """Return a record as a line of text; dropped bytes are mentioned."""
    text = session.out.log_text(record.text)
    if record.dropped:
        text += f"[{record.dropped} bytes were dropped here]"
    if record.stream is Stream.SYSTEM:
        text = "# " + text
    if times:
        at = datetime.fromtimestamp(record.t_ms / 1000, UTC)
        return f"{at:%Y-%m-%dT%H:%M:%S}.{record.t_ms % 1000:03}Z " + text
    return text


async def _print_present(
    session: Session, job_id: str, start: LogPosition, lines: int | None, *, times: bool
) -> LogPosition:
    kept: deque[LogRecord] = deque(maxlen=lines)
    end = start
    async for record in session.client.logs.read(job_id, start):
        end = LogPosition(record.execution_id, record.offset)
        if lines is None:
            session.out.stream(record, show_record(session, record, times=times))
        else:
            kept.append(record)
    for record in kept:
        session.out.stream(record, show_record(session, record, times=times))
    return end


async def _search_page(
    client: ControlClient, text: str, job: str | None, queue_id: str | None, cursor: str | None
) -> LogMatches:
    if job is not None:
        return await client.logs.search_job(job, text, cursor)
    return await client.logs.search(text, queue_id, cursor)
