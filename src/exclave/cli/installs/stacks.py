"""`exclave installs stack` and `stack-outputs`: the Stack of an install."""

import os
from pathlib import Path

import click

from exclave.cli.deps import Session, verb
from exclave.cli.lookup import find_install
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.wire.stacks import StackCreated

group = SuggestingGroup("stacks")
"""Verbs that are found under `installs`."""


@verb(group, "stack")
@click.argument("install", metavar="NAME|ID")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the script to this file and print only the command.",
)
async def make_stack(session: Session, install: str, output: Path | None) -> None:
    """Create a new Stack for the customer, valid for an hour: a script and a command to paste."""
    install_id = await find_install(session, install)
    made = await session.client.stacks.create(install_id)
    if output is not None:
        _write_script(output, made.script)
    session.out.show(made, _write_text(made, output))
    if session.out.json_mode:
        return
    session.out.say(_advise(made, output))
    if made.warning:
        session.out.say(f"\nwarning: {made.warning}")


@verb(group, "stack-outputs")
@click.argument("install", metavar="NAME|ID")
async def show_outputs(session: Session, install: str) -> None:
    """Show the outputs that the customer's Stack reported."""
    found = await session.client.stacks.get(await find_install(session, install))
    pairs = [
        ("version", str(found.version)),
        ("state", found.state),
        ("told", show_time(found.run_at) or "never"),
        *((name, _show(value)) for name, value in sorted(found.outputs.items())),
    ]
    session.out.show(found, session.out.details(pairs))


def _write_script(output: Path, script: str) -> None:
    output.unlink(missing_ok=True)
    handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(script)


def _write_text(made: StackCreated, output: Path | None) -> str:
    return made.command if output is not None else made.script.rstrip("\n")


def _advise(made: StackCreated, output: Path | None) -> str:
    until = show_time(made.expires_at)
    if output is not None:
        return (
            f"\nWrote {output}. Send it or the command above to the customer; valid until {until}."
        )
    return f"\nThe same as one command, valid until {until}:\n  {made.command}"


def _show(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={text}" for key, text in value.items())
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    return str(value)
