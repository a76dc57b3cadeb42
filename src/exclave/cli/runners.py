"""`exclave runners`: list, show, enrol and revoke runners."""

import shlex

import click

from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build
from exclave.cli.lookup import build_option, find_queue, gather, page_options
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.wire.identity import EnrolmentCreated, NewEnrolment, RevokeRunner, RunnerReply

group = SuggestingGroup("runners", help="Enrol, show and revoke runners.")

_MIB = 1 << 20
_HEADERS = ("ID", "NAME", "KIND", "QUEUE", "STATE", "PRESENCE", "RUNNING", "SEEN", "CAUSE", "ALARM")


@verb(group, "list")
@page_options
async def list_runners(session: Session, limit: int, cursor: str | None) -> None:
    """List runners and whether they are connected."""
    page = await gather(session, session.client.runners.list, limit, cursor)
    rows = [
        [
            runner.id,
            runner.name,
            runner.kind,
            runner.queue_id,
            runner.state,
            runner.presence,
            str(runner.running),
            show_time(runner.seen_at) or "never",
            runner.cause,
            f"{show_time(runner.alarm_at)}: {runner.alarm}" if runner.alarm else "",
        ]
        for runner in page.items
    ]
    session.out.show(page, session.out.table(_HEADERS, rows))


@verb(group, "get")
@click.argument("runner_id", metavar="ID")
async def get(session: Session, runner_id: str) -> None:
    """Show a runner and its statistics."""
    _show(session, await session.client.runners.get(runner_id))


@verb(group, "enrol")
@click.option("--install", metavar="NAME|ID", help="Install that the runner works for.")
@build_option
async def enrol(session: Session, install: str | None, *, build: bool) -> None:
    """Create a one-time token and print the command that starts a runner with it."""
    queue_id = await find_queue(session, install, build=build)
    if queue_id is None:
        raise click.UsageError("pass --install NAME or --build")
    made = await session.client.runners.enrol(NewEnrolment(queue_id=queue_id))
    pairs = [
        ("token", made.token),
        ("expires", show_time(made.expires_at)),
        ("run", show_start_command(made)),
    ]
    session.out.show(made, session.out.details(pairs))
    if not session.out.json_mode:
        session.out.say("\nRun the command on the runner's machine. The token works once.")


@verb(group, "revoke")
@click.argument("runner_id", metavar="ID")
@click.option("--reason", required=True, help="Reason; recorded in the audit log.")
@yes_option
async def revoke(session: Session, runner_id: str, reason: str, *, yes: bool) -> None:
    """Revoke a runner; it can no longer get work or report results."""
    body = build(RevokeRunner, reason=reason)
    session.confirm(
        f"Revoke the runner {runner_id}? It has to be enrolled again afterwards.", yes=yes
    )
    _show(session, await session.client.runners.revoke(runner_id, body))


def show_start_command(made: EnrolmentCreated) -> str:
    """Return the command that starts a runner."""
    words = ["exclave", "runner", "--url", made.runner_url, "--enrolment", made.token]
    return shlex.join(words)


def _show(session: Session, runner: RunnerReply) -> None:
    stats = runner.stats
    pairs = [
        ("name", runner.name),
        ("id", runner.id),
        ("kind", runner.kind),
        ("queue", runner.queue_id),
        ("state", runner.state),
        ("presence", runner.presence),
        ("cause", runner.cause),
        ("alarm", f"{show_time(runner.alarm_at)}: {runner.alarm}" if runner.alarm else ""),
        ("seen", show_time(runner.seen_at) or "never"),
        ("version", f"{runner.version} (protocol {runner.protocol})"),
        ("can do", ", ".join(runner.capabilities)),
        ("running", str(runner.running)),
        ("finished", str(stats.jobs_finished)),
        ("load", f"{stats.load:.2f}"),
        ("memory", f"{stats.memory_bytes // _MIB} MiB"),
        ("disk free", f"{stats.disk_free_bytes // _MIB} MiB"),
        ("logs to send", f"{stats.log_backlog_bytes} bytes" if stats.log_backlog_bytes else ""),
        ("results to send", str(stats.results_waiting or "")),
        ("envelopes refused", str(stats.envelopes_refused or "")),
        ("created", show_time(runner.created_at)),
    ]
    session.out.show(runner, session.out.details(pairs))
