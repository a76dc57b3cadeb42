"""`exclave installs state` and `readme`."""

from datetime import UTC, datetime

import click

from exclave.base.errors import InvalidInput
from exclave.base.printable import dump_json
from exclave.cli.deps import Session, verb
from exclave.cli.documents import list_changes
from exclave.cli.installs.options import install_argument
from exclave.cli.lookup import find_install
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.wire.installs import StateReply

group = SuggestingGroup("installs")

_PREVIOUS = 0


@verb(group, "state")
@install_argument
@click.option("--version", type=click.IntRange(1), help="Version to use.  [default: the newest]")
@click.option(
    "--at", metavar="TIME", help="Show the state at this time, such as 2026-01-31T12:00:00Z."
)
@click.option(
    "--diff",
    is_flag=False,
    flag_value=_PREVIOUS,
    type=click.IntRange(0),
    help="Show the changes since version N, or since the previous version.",
)
async def state(
    session: Session, install: str, version: int | None, at: str | None, diff: int | None
) -> None:
    """Print the state as JSON: everything that templates can read below `.nuon`."""
    if version is not None and at is not None:
        raise InvalidInput("pass --version or --at, not both")
    install_id = await find_install(session, install)
    moment = None if at is None else _read_time(at)
    reply = await session.client.installs.get_state(install_id, version=version, at=moment)
    if diff is None:
        session.out.show(reply, dump_json(reply.document, indent=2))
        _print_version(session, reply)
        return
    base = diff or reply.version - 1
    old = (
        {}
        if base < 1
        else (await session.client.installs.get_state(install_id, version=base)).document
    )
    changes = list_changes(old, reply.document)
    lines = "\n".join(change.write() for change in changes)
    value = {"from": base, "to": reply.version, "changes": [change.to_json() for change in changes]}
    session.out.show(value, lines)
    if not session.out.json_mode:
        session.out.say(f"From version {base} to {reply.version}: {len(changes)} values differ.")


@verb(group, "readme")
@install_argument
async def readme(session: Session, install: str) -> None:
    """Print the app's README with the values of this install."""
    rendered = await session.client.installs.get_readme(await find_install(session, install))
    for warning in rendered.warnings:
        session.out.say(f"warning: {warning}")
    session.out.show(rendered, rendered.text.rstrip("\n"))


def _print_version(session: Session, reply: StateReply) -> None:
    if not session.out.json_mode:
        line = f"Version {reply.version}, {show_time(reply.at)}: {reply.cause}."
        session.out.say(line)


def _read_time(text: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f"`{text}` is not a time", hint="Write it as 2026-01-31T12:00:00Z."
        ) from error
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
