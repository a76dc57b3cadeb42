"""`exclave installs stack-versions`, `stack-diff`, `stack-links`: the Stack of a cloud."""

import click

from exclave.cli.deps import Session, verb
from exclave.cli.installs.options import install_argument
from exclave.cli.lookup import find_install
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.wire.stacks import StackChange, StackCreated, StackVersionReply

group = SuggestingGroup("cloud stacks")
"""Verbs that are found under `installs`."""
_SHOWN_DIGITS = 12
_MARKS = {"added": "+", "removed": "-", "changed": "~"}


@verb(group, "stack-versions")
@install_argument
async def list_versions(session: Session, install: str) -> None:
    """List the versions of a Stack: which one the customer runs, and which one waits."""
    install_id = await find_install(session, install)
    versions = await session.client.stacks.list_versions(install_id)
    headers = ["VERSION", "STATE", "DIGEST", "CREATED", "APPLIED", "MACHINE SAYS"]
    rows = [_write_version(version) for version in versions.items]
    session.out.show(versions, session.out.table(headers, rows))


@verb(group, "stack-diff")
@install_argument
@click.argument("before", type=click.IntRange(1), required=False)
@click.argument("after", type=click.IntRange(1), required=False)
async def compare_versions(
    session: Session, install: str, before: int | None, after: int | None
) -> None:
    """Show what changes for the customer from version BEFORE to AFTER.

    By default from the version that the customer runs to the newest one.
    """
    install_id = await find_install(session, install)
    diff = await session.client.stacks.compare(install_id, before, after)
    session.out.show(diff, "\n".join(_write_change(change) for change in diff.changes))
    if not session.out.json_mode:
        match len(diff.changes):
            case 0:
                what = "Nothing changes"
            case 1:
                what = "1 change"
            case many:
                what = f"{many} changes"
        session.out.say(f"\n{what} from version {diff.before} to version {diff.after}.")


@verb(group, "stack-links")
@install_argument
@click.option("--revoke", metavar="ID", help="Revoke this link.")
async def list_links(session: Session, install: str, revoke: str | None) -> None:
    """List the links with which a customer looks at the Stack, or revoke one."""
    install_id = await find_install(session, install)
    if revoke is not None:
        await session.client.stacks.revoke_link(install_id, revoke)
    links = await session.client.stacks.list_links(install_id)
    rows = [
        [link.id, link.created_by, show_time(link.created_at), show_time(link.expires_at)]
        for link in links.items
    ]
    session.out.show(links, session.out.table(["LINK", "BY", "CREATED", "WORKS UNTIL"], rows))


def write_guide(created: StackCreated) -> str:
    """Return what the vendor sends to the customer of a cloud, and what the customer does."""
    until = show_time(created.expires_at)
    lines = [
        f"\nVersion {created.version}. Send this page to the customer; it works until {until}:"
    ]
    lines += [f"  {created.page}", "", created.instructions.summary]
    for step in created.instructions.steps:
        lines += ["", f"{step.title}"]
        lines += [f"  {line}" for line in step.text.splitlines()]
        lines += [f"  {link.title}: {link.url}" for link in step.links]
        lines += [f"  {line}" for command in step.commands for line in command.splitlines()]
    lines += ["", *created.findings] if created.findings else []
    return "\n".join(lines)


def _write_change(change: StackChange) -> str:
    details = "".join(f"\n    {detail}" for detail in change.details)
    wider = "  (wider)" if change.is_wider else ""
    return f"{_MARKS.get(change.kind, change.kind)} {change.part} {change.name}{wider}{details}"


def _write_version(version: StackVersionReply) -> list[str]:
    beacon = version.beacon
    message = "" if beacon is None else f"{beacon.stage} {beacon.note}".strip() + " (unverified)"
    return [
        str(version.version),
        version.state,
        version.digest[:_SHOWN_DIGITS],
        show_time(version.created_at),
        show_time(version.applied_at),
        message,
    ]
