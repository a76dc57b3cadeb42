"""`exclave stack secrets` and `exclave stack inputs`: values that only the customer sets."""

import asyncio
import sys
from pathlib import Path

import click

from exclave.base.clock import Clock, SystemClock
from exclave.base.errors import InvalidInput, NotFound
from exclave.base.ids import SystemRandomness
from exclave.base.secrets import Secret
from exclave.cli.root import SuggestingGroup
from exclave.cli.terminal import ask_secret, print_err
from exclave.main.commands.process import answer, json_option
from exclave.main.stack import open_secrets
from exclave.runner.images.stack_registry import LOGIN, read_registry
from exclave.runner.logs.secret_spellings import is_maskable
from exclave.runner.secrets.store import generate_secret
from exclave.runner.stack.folder import ReportReply, StackFolder
from exclave.runner.stack.supervisor import find_supervisor
from exclave.wire.stacks import INPUT_SECRET, StackInput, StackSecret


class StackGroup(SuggestingGroup):
    """A group that accepts the `--folder` which a Stack's launcher adds to every command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave the folder to the verbs: without one, as in `stack --help`, nobody asked for it."""
        words = args[:-2] if args[-2:-1] == ["--folder"] else args
        has_verb = any(not word.startswith("-") for word in words)
        return super().parse_args(ctx, args if has_verb else words)


secrets = StackGroup("secrets", help="Manage the app's secrets; they never leave this machine.")
inputs = StackGroup("inputs", help="Manage the inputs of the app that the customer sets.")

folder_option = click.option(
    "--folder", required=True, type=click.Path(path_type=Path), help="Folder of the Stack."
)
file_option = click.option(
    "--from-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with the value.  [default: stdin if it is a pipe, else a prompt]",
)
_ANSWER_WITHIN_S = 15.0


@secrets.command("list")
@folder_option
@json_option
def list_secrets(folder: Path, *, json_mode: bool) -> None:
    """List the app's secrets, and whether they are set."""
    stack = StackFolder(folder)
    there = asyncio.run(open_secrets(stack).list_names())
    known = [*stack.read_document().terms.secrets, *_list_login(stack, there)]
    value = [{**secret.model_dump(), "exists": secret.name in there} for secret in known]
    lines = [
        f"{_format_secret(secret, secret.name in there):10} {secret.name:30} {secret.description}"
        for secret in known
    ]
    answer({"secrets": value}, "\n".join(lines), json_mode=json_mode)


@secrets.command("set")
@click.argument("name")
@file_option
@folder_option
@json_option
def set_secret(name: str, from_file: Path | None, folder: Path, *, json_mode: bool) -> None:
    """Set a secret from a prompt without echo, a file, or a pipe."""
    stack = StackFolder(folder)
    _find_secret(stack, name)
    value = _read_value(name, from_file)
    asyncio.run(open_secrets(stack).put(name, value))
    if not is_maskable(value.reveal()):
        print_err("Warning: it is too short to be masked in logs.")
    answer({"name": name, "exists": True}, f"Stored `{name}`.", json_mode=json_mode)


@secrets.command("generate")
@click.argument("name")
@click.option("--force", is_flag=True, help="Replace an existing value.")
@folder_option
@json_option
def generate(name: str, folder: Path, *, force: bool, json_mode: bool) -> None:
    """Generate a secret on this machine; it is not shown."""
    stack = StackFolder(folder)
    _find_secret(stack, name)
    store = open_secrets(stack)
    value = generate_secret(SystemRandomness())
    if force:
        asyncio.run(store.put(name, value))
    elif not asyncio.run(store.put_missing(name, value)):
        raise InvalidInput(f"`{name}` already has a value", hint="Add --force to replace it.")
    answer({"name": name, "exists": True}, f"Generated `{name}`.", json_mode=json_mode)


@inputs.command("list")
@folder_option
@json_option
def list_inputs(folder: Path, *, json_mode: bool) -> None:
    """List the inputs that you set, with their values; sensitive ones are hidden."""
    stack = StackFolder(folder)
    given = stack.read_inputs()
    there = asyncio.run(open_secrets(stack).list_names())
    value, lines = [], []
    for declared in stack.read_document().terms.inputs:
        shown = _show_input(declared, given, there)
        value.append({**declared.model_dump(), "value": shown})
        state = _format_input(declared, shown)
        lines.append(f"{state:30} {declared.name:30} {declared.description}".rstrip())
    answer({"inputs": value}, "\n".join(lines), json_mode=json_mode)


@inputs.command("set")
@click.argument("pairs", nargs=-1, required=True, metavar="NAME=VALUE…")
@file_option
@folder_option
@json_option
def set_inputs(
    pairs: tuple[str, ...], from_file: Path | None, folder: Path, *, json_mode: bool
) -> None:
    """Set inputs. `NAME` without a value prompts for it; sensitive ones stay on this machine."""
    stack = StackFolder(folder)
    before = stack.read_report_reply()
    names = [_keep_input(stack, pair, from_file) for pair in pairs]
    message = asyncio.run(_wait_for_answer(stack, before, SystemClock()))
    answer({"inputs": names, "answer": message}, message, json_mode=json_mode)


def keep_values(stack: StackFolder, pairs: tuple[str, ...], files: tuple[str, ...]) -> None:
    """Store inputs and secrets of the command line."""
    for pair in pairs:
        _keep_input(stack, pair, None)
    for pair in files:
        name, file = parse_secret_file(pair)
        _find_secret(stack, name)
        asyncio.run(open_secrets(stack).put(name, _read_value(name, file)))


def parse_secret_file(pair: str) -> tuple[str, Path]:
    """Return the name and the file of an option `NAME=FILE`; the file has to be there."""
    name, equals, file = pair.partition("=")
    if not equals or not Path(file).is_file():
        raise InvalidInput(f"`{pair}` does not name a file", hint="Write it as NAME=FILE.")
    return name, Path(file)


def _keep_input(stack: StackFolder, pair: str, from_file: Path | None) -> str:
    """Store one input; a sensitive one is stored with the secrets and never sent."""
    name, equals, text = pair.partition("=")
    known = {declared.name: declared for declared in stack.read_document().terms.inputs}
    if name not in known:
        raise NotFound(
            f"there is no input `{name}` that you can set",
            hint=f"You can set: {', '.join(known) or 'none'}.",
        )
    value = Secret(text) if equals else _read_value(name, from_file)
    if known[name].sensitive:
        asyncio.run(open_secrets(stack).put(f"{INPUT_SECRET}{name}", value))
    else:
        given = {**stack.read_inputs(), name: value.reveal()}
        stack.write_json(stack.inputs, given)
    return name


async def _wait_for_answer(stack: StackFolder, before: ReportReply | None, clock: Clock) -> str:
    """Return the control plane's reply to the new values, if the Stack runs."""
    if find_supervisor(stack) is None:
        return "Stored; they are sent when the Stack runs."
    until = clock.monotonic() + _ANSWER_WITHIN_S
    while clock.monotonic() < until:
        reply = stack.read_report_reply()
        if reply is not None and reply != before:
            if reply.ok:
                return "Stored and accepted by the control plane."
            raise InvalidInput(reply.message, hint=reply.hint)
        await clock.sleep(0.1)
    return "Stored; the control plane has not answered yet."


def _find_secret(stack: StackFolder, name: str) -> None:
    known = [secret.name for secret in stack.read_document().terms.secrets]
    if name not in known and name not in LOGIN:
        raise NotFound(
            f"the app has no secret `{name}`",
            hint=f"It has: {', '.join(known) or 'none'}."
            f" The login of a registry for images is in {' and '.join(LOGIN)}.",
        )


def _list_login(stack: StackFolder, there: frozenset[str]) -> list[StackSecret]:
    """Return the secrets of the login at the registry for images, if there is one."""
    if read_registry(stack.runner) is None and not there & set(LOGIN):
        return []
    return [
        StackSecret(name=name, description="Login of the registry for images.") for name in LOGIN
    ]


def _read_value(name: str, from_file: Path | None) -> Secret:
    """Return a value that must not appear in process lists or on the screen."""
    if from_file is not None:
        text = from_file.read_text(encoding="utf-8")
    elif sys.stdin.isatty():
        text = ask_secret(name)
    else:
        text = sys.stdin.read()
    text = text.removesuffix("\n").removesuffix("\r")
    if not text or "\0" in text:
        raise InvalidInput(f"no value was given for `{name}`")
    return Secret(text)


def _format_secret(secret: StackSecret, there: bool) -> str:  # noqa: FBT001 - a fact
    if there:
        return "there"
    if secret.auto_generate:
        return "generated"
    return "MISSING" if secret.required else "optional"


def _format_input(declaration: StackInput, value: str | None) -> str:
    if value is not None:
        return value
    if declaration.required:
        return "MISSING"
    return "optional" if declaration.default is None else f"{declaration.default} (default)"


def _show_input(
    declaration: StackInput, given: dict[str, str], there: frozenset[str]
) -> str | None:
    if declaration.sensitive:
        return "***" if f"{INPUT_SECRET}{declaration.name}" in there else None
    return given.get(declaration.name)
