"""`exclave jobs`: show and cancel jobs."""

import click

from exclave.base.printable import dump_json
from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build
from exclave.cli.lookup import build_option, find_queue, gather, install_option, page_options
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.cli.workflows import plans
from exclave.client.control import ControlClient
from exclave.wire.jobs import DeclareLost, JobReply, JobState
from exclave.wire.model import Page

group = SuggestingGroup("jobs", help="Show and cancel jobs: what runners execute.")


@verb(group, "list")
@install_option
@build_option
@click.option("--workflow", metavar="ID", help="Only show jobs of this workflow.")
@click.option(
    "--state",
    type=click.Choice([state.value for state in JobState]),
    help="Only show jobs in this state.",
)
@page_options
async def list_jobs(
    session: Session,
    install: str | None,
    workflow: str | None,
    state: str | None,
    limit: int,
    cursor: str | None,
    *,
    build: bool,
) -> None:
    """List jobs, newest first."""
    client: ControlClient = session.client
    queue_id = await find_queue(session, install, build=build)
    wanted = JobState(state) if state else None

    async def fetch(at: str | None, most: int) -> Page[JobReply]:
        return await client.jobs.list(
            at, most, queue_id=queue_id, workflow_id=workflow, state=wanted
        )

    page = await gather(session, fetch, limit, cursor)
    rows = [
        [
            job.id,
            job.state,
            job.step or "",
            job.kind,
            str(job.attempts),
            job.workflow_id or "",
            show_time(job.created_at),
            show_time(job.finished_at),
            job.reason or "",
        ]
        for job in page.items
    ]
    headers = ["ID", "STATE", "STEP", "KIND", "TRIES", "WORKFLOW", "CREATED", "FINISHED", "REASON"]
    session.out.show(page, session.out.table(headers, rows))


@verb(group, "get")
@click.argument("job_id", metavar="ID")
async def get(session: Session, job_id: str) -> None:
    """Show a job and its executions."""
    _show(session, await session.client.jobs.get(job_id))


@verb(group, "cancel")
@click.argument("job_id", metavar="ID")
@yes_option
async def cancel(session: Session, job_id: str, *, yes: bool) -> None:
    """Cancel a job; its processes get time to stop cleanly."""
    session.confirm(f"Cancel the job {job_id}?", yes=yes)
    _show(session, await session.client.jobs.cancel(job_id))


@verb(group, "declare-lost")
@click.argument("job_id", metavar="ID")
@click.option("--reason", required=True, help="How you know; recorded in the audit log.")
@yes_option
async def declare_lost(session: Session, job_id: str, reason: str, *, yes: bool) -> None:
    """Declare that the machine which ran a job is gone, without waiting for the timeout."""
    body = build(DeclareLost, reason=reason)
    question = f"Declare {job_id} lost? If it is still running, two executions may work at once."
    session.confirm(question, yes=yes)
    _show(session, await session.client.jobs.declare_lost(job_id, body))


def _show(session: Session, job: JobReply) -> None:
    pairs = [
        ("id", job.id),
        ("state", job.state),
        ("reason", job.reason or ""),
        ("message", job.message),
        ("blocked", "" if job.blocked_by is None else job.blocked_by.message),
        ("hint", "" if job.blocked_by is None else job.blocked_by.hint),
        ("exit code", "" if job.exit_code is None else str(job.exit_code)),
        ("kind", f"{job.kind}, {'mutating' if job.mutating else 'read-only'}"),
        ("queue", job.queue_id),
        ("workflow", job.workflow_id or ""),
        ("step", job.step or ""),
        ("lanes", ", ".join(job.lanes)),
        ("priority", str(job.priority or "")),
        ("created", show_time(job.created_at)),
        ("cancel asked", show_time(job.cancel_requested_at)),
        ("finished", show_time(job.finished_at)),
        ("outputs", dump_json(job.outputs) if job.outputs else ""),
    ]
    text = session.out.details(pairs)
    if job.executions:
        text += "\n\n" + _show_executions(session, job)
    session.out.show(job, text)


def _show_executions(session: Session, job: JobReply) -> str:
    rows = [
        [
            execution.id,
            execution.state,
            execution.runner_id,
            show_time(execution.started_at),
            show_time(execution.ended_at),
            execution.reason or "",
            f"{execution.log_bytes} bytes{'' if execution.log_complete else ', incomplete'}",
        ]
        for execution in job.executions
    ]
    headers = ["EXECUTION", "STATE", "RUNNER", "STARTED", "ENDED", "REASON", "LOG"]
    return session.out.table(headers, rows)


for command in plans.jobs.commands.values():
    group.add_command(command)
