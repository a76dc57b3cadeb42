"""`exclave stack`: the Stack on the customer's machine: run, watch, stop, disable, uninstall."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import click

from exclave.base.clock import SystemClock
from exclave.base.errors import InvalidInput, Problem
from exclave.cli.output import show_time
from exclave.cli.terminal import ask, indent, join, print_err
from exclave.main.commands.process import (
    answer,
    begin_logs,
    environment,
    json_option,
    run_async,
)
from exclave.main.commands.stack_values import StackGroup, inputs, keep_values, secrets
from exclave.main.stack import (
    build_program_argv,
    describe_isolation,
    find_jobs_folder,
    open_secrets,
    read_stack_settings,
    resign_stack,
    run_stack_runner,
    set_up,
    start_stack,
    supervise,
)
from exclave.runner.executions.kill_switch import disable_runner, enable_runner
from exclave.runner.images.stack_registry import keep_registry
from exclave.runner.kube.access.named_kubeconfigs import keep_kubeconfigs
from exclave.runner.stack import lifecycle
from exclave.runner.stack.cloud_units import UnitPlaces, write_units
from exclave.runner.stack.folder import Refusal, ReportReply, StackFolder
from exclave.runner.stack.systemd import write_unit

group = StackGroup("stack", help="Run the Stack of an install on this machine.")
group.add_command(secrets)
group.add_command(inputs)

folder_option = click.option(
    "--folder", required=True, type=click.Path(path_type=Path), help="Folder of the Stack."
)


def verb(body: Callable[..., None]) -> Callable[..., None]:
    """Return a decorator that adds the options of every verb."""
    return json_option(folder_option(body))


@group.command()
@verb
@click.option(
    "--foreground", is_flag=True, help="Run in the foreground (for systemd and other init systems)."
)
@click.option(
    "--systemd", is_flag=True, help="Print a systemd unit file instead of starting the Stack."
)
@click.option(
    "--input",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an input before the start. Can be repeated.",
)
@click.option(
    "--secret-file",
    "files",
    multiple=True,
    metavar="NAME=FILE",
    help="Read a secret from a file. Can be repeated.",
)
@click.option(
    "--kubeconfig",
    "kubeconfigs",
    multiple=True,
    metavar="[NAME=]FILE[:CONTEXT]",
    help="Let jobs use a cluster; only the path is stored. Can be repeated.",
)
@click.option(
    "--registry",
    default="",
    metavar="URL[/FOLDER]",
    help="Copy images of the app into this registry; only the address is stored.",
)
def up(
    folder: Path,
    pairs: tuple[str, ...],
    files: tuple[str, ...],
    kubeconfigs: tuple[str, ...],
    registry: str,
    *,
    foreground: bool,
    systemd: bool,
    json_mode: bool,
) -> None:
    """Start or restart the Stack; it keeps running when this terminal is closed."""
    stack = StackFolder(folder)
    if set_up(stack, environment()):
        asyncio.run(lifecycle.stop(stack, SystemClock()))
    keep_values(stack, pairs, files)
    keep_kubeconfigs(stack.runner, kubeconfigs)
    keep_registry(stack.runner, registry)
    if message := describe_isolation(stack):
        print_err(message)
    if systemd:
        unit = write_unit(
            stack, build_program_argv("up", "--foreground", "--folder", str(stack.path))
        )
        answer({"unit": unit}, unit.rstrip(), json_mode=json_mode)
    elif foreground:
        begin_logs(read_stack_settings(stack).log_level)
        run_async(_supervise(stack))
    else:
        started = asyncio.run(start_stack(stack))
        word = "runs now" if started else "runs already"
        _show(stack, f"The Stack of `{stack.read_document().terms.install}` {word}.", json_mode)


@group.command()
@verb
def start(folder: Path, *, json_mode: bool) -> None:
    """Start the Stack after a stop."""
    stack = StackFolder(folder)
    stack.read_document()
    set_up(stack, environment())
    started = asyncio.run(start_stack(stack))
    _show(stack, "Started." if started else "It runs already.", json_mode)


@group.command()
@verb
def stop(folder: Path, *, json_mode: bool) -> None:
    """Stop the Stack; jobs that change resources get up to three minutes to end."""
    stack = StackFolder(folder)
    stack.read_document()
    stopped = asyncio.run(lifecycle.stop(stack, SystemClock()))
    _show(stack, "Stopped." if stopped else "It was not running.", json_mode)


@group.command()
@verb
def status(folder: Path, *, json_mode: bool) -> None:
    """Show the status of the Stack."""
    _show(StackFolder(folder), "", json_mode)


@group.command()
@verb
def disable(folder: Path, *, json_mode: bool) -> None:
    """Stop all jobs within two minutes and accept no more until `enable`, also after restarts."""
    stack = StackFolder(folder)
    stack.read_document()
    done = disable_runner(stack.runner, SystemClock().now())
    text = "Disabled: no new jobs are accepted, and running ones are being stopped."
    _show(stack, text if done else "Already disabled.", json_mode)


@group.command()
@verb
def enable(folder: Path, *, json_mode: bool) -> None:
    """Let the Stack accept jobs again."""
    stack = StackFolder(folder)
    stack.read_document()
    done = enable_runner(stack.runner)
    _show(stack, "Enabled." if done else "It was not disabled.", json_mode)


@group.command()
@verb
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def uninstall(folder: Path, *, yes: bool, json_mode: bool) -> None:
    """Stop the Stack, revoke its identity, and remove its folder with the secrets in it."""
    stack = StackFolder(folder)
    document = stack.read_document()
    _confirm(f"Remove the Stack of `{document.terms.install}` with all its secrets?", yes=yes)
    problem = asyncio.run(_uninstall(stack))
    lines = [
        f"Removed `{stack.path}`: no process and no file of the Stack is left.",
        "What the app created stays as it is, unless it was deprovisioned before.",
    ]
    if problem:
        lines.append(f"The control plane could not be informed: {problem}")
        lines.append("Ask the vendor to revoke the runner.")
    value = {"removed": str(stack.path), "told": not problem, "problem": problem}
    answer(value, "\n".join(lines), json_mode=json_mode)


@group.command("install-unit", hidden=True)
@click.option("--root", default="/", type=click.Path(path_type=Path), help="For tests.")
@click.option("--no-start", is_flag=True, help="Only write the units.")
def install_unit(root: Path, *, no_start: bool) -> None:
    """Run the runner of a machine in a cloud under systemd; the boot script ends with this."""
    usual = UnitPlaces()
    folders = (usual.root, usual.data, usual.etc, usual.units)
    places = UnitPlaces(*(root / folder.relative_to("/") for folder in folders))
    write_units(places, sys.executable)
    if no_start:
        return
    for words in (["daemon-reload"], ["disable", "--now", "ssh.service", "ssh.socket"]):
        subprocess.run(["systemctl", *words], check=False)  # noqa: S603, S607 - words, no shell
    subprocess.run(["systemctl", "enable", "--now", *places.names], check=True)  # noqa: S603, S607 - words, no shell


@group.command(hidden=True)
@folder_option
def run(folder: Path) -> None:
    """Run the Stack's runner (used by the supervisor)."""
    stack = StackFolder(folder)
    begin_logs(read_stack_settings(stack).log_level)
    code: list[int] = []

    async def work() -> None:
        code.append(await run_stack_runner(stack))

    run_async(work())
    click.get_current_context().exit(code[0])


async def _supervise(stack: StackFolder) -> None:
    if not await supervise(stack):
        refusal = stack.read_refusal() or Refusal(message="the runner ended for good")
        raise lifecycle.StackFailed(refusal.message, hint=refusal.hint)


async def _uninstall(stack: StackFolder) -> str:
    """Stop, revoke and remove the Stack; return why the control plane was not informed, if so."""
    await lifecycle.stop(stack, SystemClock())
    problem = ""
    try:
        await resign_stack(stack)
    except Problem as why:
        problem = why.message
    await lifecycle.remove(stack, SystemClock(), find_jobs_folder(stack))
    return problem


def _confirm(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(
            f"this needs a confirmation, and there is no terminal to ask: {question}",
            hint="Add --yes if you are sure.",
        )
    if not ask(question):
        raise click.Abort


def _show(stack: StackFolder, message: str, json_mode: bool) -> None:  # noqa: FBT001 - a mode
    if message and not json_mode:
        print_err(message)
    there = asyncio.run(open_secrets(stack).list_names())
    current = lifecycle.read_status(stack, there)
    answer(current.to_json(), _write_status(stack, current), json_mode=json_mode)


def _write_status(stack: StackFolder, current: lifecycle.StackStatus) -> str:
    state = current.state + (" (disabled by you)" if current.disabled else "")
    pairs: list[tuple[str, object]] = [
        ("install", f"{current.install} ({current.install_id})"),
        ("state", state),
        ("problem", current.problem),
        ("control plane", current.runner_url),
        ("reported", _write_report(current.report)),
        ("folder", current.folder),
        ("log", stack.log),
    ]
    pairs += [
        ("missing secret", stack.format_command("secrets", "set", name))
        for name in current.missing_secrets
    ]
    pairs += [
        ("missing input", stack.format_command("inputs", "set", f"{name}=…"))
        for name in current.missing_inputs
    ]
    pairs.append(("look after it", f"{stack.launcher} --help"))
    return join(f"{name:15} " + indent(str(value), " " * 16) for name, value in pairs if value)


def _write_report(report: ReportReply | None) -> str:
    if report is None:
        return ""
    if report.ok:
        return show_time(datetime.fromisoformat(report.at)) if report.at else ""
    return f"refused: {report.message}"
