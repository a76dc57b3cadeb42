"""`exclave installs inputs`: show and set the inputs of an install."""

import click

from exclave.base.errors import InvalidInput
from exclave.cli.deps import Session, verb
from exclave.cli.inputs import build
from exclave.cli.installs.options import (
    approve_option,
    inputs_file_option,
    install_argument,
    read_inputs,
    show_begun,
    wait_option,
)
from exclave.cli.lookup import find_install
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.wire.installs import InputReply, InputsChanged, InputsReply, SetInputs

group = SuggestingGroup("installs")
inputs = SuggestingGroup("inputs", help="Show and set the inputs of an install.")
group.add_command(inputs)


@verb(inputs, "get")
@install_argument
@click.option("--version", type=click.IntRange(1), help="Show the inputs of this version.")
async def get(session: Session, install: str, version: int | None) -> None:
    """Show the inputs of an install by group; sensitive values are not shown."""
    reply = await session.client.installs.get_inputs(await find_install(session, install), version)
    session.out.show(reply, _write(session, reply))
    if not session.out.json_mode:
        session.out.say(f"Version {reply.version}, {show_time(reply.at)}, by {reply.by}.")


@verb(inputs, "set")
@install_argument
@click.argument("pairs", nargs=-1, metavar="[NAME=VALUE]...")
@inputs_file_option
@click.option(
    "--unset",
    multiple=True,
    metavar="NAME",
    help="Reset this input to its default. Can be repeated.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show what would be redeployed without changing anything."
)
@approve_option
@wait_option
async def set_inputs(
    session: Session,
    install: str,
    pairs: tuple[str, ...],
    inputs_file: str | None,
    unset: tuple[str, ...],
    *,
    dry_run: bool,
    approve_all: bool,
    wait: bool,
) -> int | None:
    """Set inputs and redeploy the components that use the changed ones."""
    values = read_inputs(pairs, inputs_file, "an input as")
    if not values and not unset:
        raise InvalidInput("there is nothing to set", hint="Write NAME=VALUE.")
    install_id = await find_install(session, install)
    body = build(
        SetInputs,
        values=values,
        unset=list(unset),
        dry_run=dry_run,
        approve_all=approve_all or None,
    )
    changed = await session.client.installs.set_inputs(install_id, body)
    if not session.out.json_mode:
        session.out.say(_format_changed(changed, dry_run=dry_run))
    return await show_begun(session, changed.workflow, wait=wait, value=changed)


def _format_changed(changed: InputsChanged, *, dry_run: bool) -> str:
    if not changed.changed:
        return "No value changed; nothing was started."
    parts = [*(["the sandbox and all on it"] if changed.sandbox else []), *changed.components]
    would = "Would change" if dry_run else "Changed"
    summary = f"{would}: {', '.join(changed.changed)}."
    if not parts:
        return f"{summary} No component uses it."
    if dry_run or changed.workflow:
        return f"{summary} Affected: {', '.join(parts)}."
    return f"{summary} No component that uses it is deployed yet."


def _write(session: Session, reply: InputsReply) -> str:
    titles = {group.name: group.display_name or group.name for group in reply.groups}
    rows = [
        [
            titles.get(item.group, item.group),
            item.name,
            _show_value(item),
            item.type,
            _show_source(item),
            item.description or item.display_name,
        ]
        for item in sorted(reply.inputs, key=lambda item: _rank(reply, item))
    ]
    return session.out.table(["GROUP", "INPUT", "VALUE", "TYPE", "FROM", "DESCRIPTION"], rows)


def _rank(reply: InputsReply, item: InputReply) -> int:
    names = [group.name for group in reply.groups]
    return names.index(item.group) if item.group in names else len(names)


def _show_value(entry: InputReply) -> str:
    if entry.sensitive:
        return "***" if entry.is_set else ""
    return entry.value or ""


def _show_source(entry: InputReply) -> str:
    if not entry.is_set:
        return "default" if entry.value or entry.sensitive else "not set"
    return entry.owner
