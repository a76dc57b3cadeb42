"""`exclave installs stack` and `stack-outputs`: the Stack of an install."""

import os
from pathlib import Path

import click

from exclave.base.errors import InvalidInput
from exclave.cli.deps import Session, verb
from exclave.cli.installs.cloud_stacks import write_guide
from exclave.cli.lookup import find_install
from exclave.cli.output import Output, show_time
from exclave.cli.root import SuggestingGroup
from exclave.wire.stacks import StackCreated, StackFile

group = SuggestingGroup("stacks")
"""Verbs that are found under `installs`."""


@verb(group, "stack")
@click.argument("install", metavar="NAME|ID")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the file there, or the files into this folder; print only the commands.",
)
async def make_stack(session: Session, install: str, output: Path | None) -> None:
    """Create a Stack for the customer: its files, and how to run them.

    For `local` it is a script that is valid for an hour, for a cloud a page that is for 90 days.
    """
    install_id = await find_install(session, install)
    created = await session.client.stacks.create(install_id)
    if output is not None:
        _write_files(output, created.files)
    session.out.show(created, _write_text(session.out, created, output))
    if session.out.json_mode:
        return
    advice = write_guide(created) if created.page else _write_advice(created, output)
    session.out.say(advice)
    if created.instructions.warning:
        session.out.say(f"\nwarning: {created.instructions.warning}")


@verb(group, "stack-outputs")
@click.argument("install", metavar="NAME|ID")
async def show_outputs(session: Session, install: str) -> None:
    """Show what the customer's Stack reported."""
    stack = await session.client.stacks.get(await find_install(session, install))
    pairs = [
        ("version", str(stack.version)),
        ("state", stack.state),
        ("reported", show_time(stack.run_at) or "never"),
        *((name, _show(value)) for name, value in sorted(stack.outputs.items())),
    ]
    session.out.show(stack, session.out.details(pairs))


def _write_files(output: Path, files: list[StackFile]) -> None:
    if len(files) == 1 and not output.is_dir():
        _write_private(output, files[0].content)
        return
    output.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in files:
        if file.content:  # an archive is fetched from its address
            _write_private(_prepare_path(output, file.name), file.content)


def _prepare_path(output: Path, name: str) -> Path:
    """Create the folders of a file below the output folder; return the path of the file.

    The name has no `..` (`FileName`), and a folder that is a link could lead elsewhere.
    """
    *folders, last = name.split("/")
    folder = output
    for part in folders:
        folder /= part
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise InvalidInput(
                f"{folder} is not a folder, and a file of the Stack belongs into it",
                hint="Write the Stack into a new or empty folder.",
            )
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder / last


def _write_private(path: Path, content: str) -> None:
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(content)


def _write_text(out: Output, created: StackCreated, output: Path | None) -> str:
    commands = "\n".join(created.instructions.commands)
    if output is not None:
        return commands
    if len(created.files) == 1:
        return created.files[0].content.rstrip("\n")
    rows = [(file.name, str(file.size), file.url) for file in created.files]
    return out.table(("FILE", "BYTES", "ADDRESS"), rows)


def _write_advice(created: StackCreated, output: Path | None) -> str:
    until = show_time(created.expires_at)
    instructions = created.instructions
    if output is not None and len(created.files) == 1:
        return (
            f"\nWrote {output}. Send it or the command above to the customer; valid until {until}."
        )
    links = [f"  {link.title}: {link.url}" for link in instructions.links]
    lines = [*links, *(f"  {command}" for command in instructions.commands)]
    if len(created.files) == 1:
        return "\n".join([f"\nThe same as one command, valid until {until}:", *lines])
    wrote = f"Wrote {len(created.files)} files to {output}. " if output is not None else ""
    return "\n".join([f"\n{wrote}{instructions.summary} Valid until {until}.", *lines])


def _show(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={text}" for key, text in value.items())
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return str(value)
