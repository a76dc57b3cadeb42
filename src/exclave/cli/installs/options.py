"""What the commands about installs share: options, input values, started workflows."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from exclave.base.errors import InvalidInput
from exclave.cli.deps import Session
from exclave.cli.inputs import read_document, read_pairs
from exclave.cli.workflows.watch import watch_workflow
from exclave.wire.workflows import WorkflowReply

Body = Callable[..., Any]

install_argument = click.argument("install", metavar="NAME|ID")
wait_option = click.option(
    "--wait", is_flag=True, help="Wait for the workflow to end and show its progress."
)
inputs_file_option = click.option(
    "--inputs-file",
    metavar="FILE",
    help="TOML or JSON file with values of inputs; `-` reads stdin.",
)
approve_option = click.option(
    "--approve-all", is_flag=True, help="Approve all plans of this workflow in advance."
)


def label_option(about: str) -> Callable[[Body], Body]:
    """Return a repeatable option `--label key=value`."""
    return click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help=about)


def read_inputs(pairs: Sequence[str], file: str | None, option: str) -> dict[str, str]:
    """Return input values of a file and of the command line, which takes precedence."""
    given = {} if file is None else _read_file(file)
    return {**given, **read_pairs(pairs, option)}


async def show_begun(
    session: Session, begun: WorkflowReply | None, *, wait: bool, value: object = None
) -> int | None:
    """Show a started workflow, or watch it to its end and return its exit code."""
    if begun is not None and wait:
        return await watch_workflow(session, begun.id, begun)
    if begun is not None:
        session.out.show(value or begun, begun.id)
        if not session.out.json_mode:
            session.out.say(f"Started `{begun.name}`. Watch: exclave workflows watch {begun.id}")
    elif value is not None:
        session.out.show(value, "")
    return None


def _read_file(file: str) -> dict[str, str]:
    values = read_document(file)
    nested = values.get("inputs")
    if set(values) == {"inputs"} and isinstance(nested, Mapping):
        values = nested
    return {str(name): _write_text(file, str(name), value) for name, value in values.items()}


def _write_text(file: str, name: str, value: object) -> str:
    """Return a value as the text that templates see."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case list() | dict():
            return json.dumps(value, ensure_ascii=False)
        case _:
            raise InvalidInput(f"{file}: `{name}` is neither text, number, bool, list nor table")
