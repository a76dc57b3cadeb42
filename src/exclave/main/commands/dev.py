"""`exclave dev`: a control plane and runners on this machine."""

import asyncio
from pathlib import Path

import click

from exclave.base.errors import InvalidInput
from exclave.cli.config import DEV_FILE
from exclave.cli.terminal import print_err
from exclave.main.commands.process import begin_logs, environment, run_async
from exclave.main.commands.stack_values import parse_secret_file
from exclave.main.demo import run_demo
from exclave.main.dev import Dev, run_dev
from exclave.main.environment import read_settings
from exclave.main.server import watch_signals
from exclave.main.settings import ServerSettings
from exclave.runner.images.stack_registry import LOGIN, parse_registry
from exclave.runner.kube.access.named_kubeconfigs import format_option, parse_option


@click.command()
@click.option("--data", type=click.Path(path_type=Path), help="Data folder.  [default: .exclave]")
@click.option("--control-port", type=int, help="Port of the Control API; 0 chooses a free one.")
@click.option("--runner-port", type=int, help="Port of the Runner API; 0 chooses a free one.")
@click.option(
    "--demo",
    "app",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Deploy the app in this directory first, as a demo.",
)
@click.option(
    "--kubeconfig",
    "kubeconfigs",
    multiple=True,
    metavar="[NAME=]FILE[:CONTEXT]",
    help="Let installs created with --here use a cluster. Can be repeated.",
)
@click.option(
    "--registry",
    default="",
    metavar="URL[/FOLDER]",
    help="Let installs created with --here copy the images of their app into this registry.",
)
@click.option(
    "--secret-file",
    "files",
    multiple=True,
    metavar="NAME=FILE",
    help="Read registry_username or registry_password, the login of --registry, from a file.",
)
@click.option("--exit", "then_exit", is_flag=True, help="Exit after the demo; 0 if it succeeded.")
def dev(
    data: Path | None,
    control_port: int | None,
    runner_port: int | None,
    app: Path | None,
    kubeconfigs: tuple[str, ...],
    registry: str,
    files: tuple[str, ...],
    *,
    then_exit: bool,
) -> None:
    """Run a control plane, a build runner and the runners of installs created with --here."""
    if then_exit and app is None:
        raise click.UsageError("--exit needs --demo")
    settings = read_settings(
        ServerSettings,
        environment(),
        data=data,
        control_port=control_port,
        runner_port=runner_port,
    )
    begin_logs("warning" if settings.log_level == "info" else settings.log_level)
    options = _write_options(kubeconfigs, registry, files)
    run_async(_run(settings, app, options, then_exit=then_exit))


def _write_options(
    kubeconfigs: tuple[str, ...], registry: str, files: tuple[str, ...]
) -> list[str]:
    """Return what each Stack is started with, checked now rather than in each Stack's log."""
    named = [format_option(*parse_option(text)) for text in kubeconfigs]
    options = [word for text in named for word in ("--kubeconfig", text)]
    if registry:
        parse_registry(registry)
        options += ["--registry", registry]
    for pair in files:
        name, file = parse_secret_file(pair)
        if name not in LOGIN:
            raise InvalidInput(
                f"--secret-file {pair}: only the login of a registry is the same for all installs",
                hint=f"Set secrets of an app with `stack secrets set {name}` of its Stack.",
            )
        options += ["--secret-file", f"{name}={file.resolve()}"]
    return options


async def _run(
    settings: ServerSettings, app: Path | None, options: list[str], *, then_exit: bool
) -> None:
    stopping = watch_signals()
    print_err("Starting the control plane and a build runner …")
    async with run_dev(settings, options) as running:
        _say_addresses(settings, running)
        succeeded = (
            True if app is None else await _run_demo(running, app, stopping, to_the_end=then_exit)
        )
        if then_exit:
            print_err(f"The demo {'succeeded' if succeeded else 'FAILED'}.")
        else:
            print_err("\nServing until Ctrl-C.")
            await stopping.wait()
    if not succeeded and then_exit:
        raise click.ClickException("the demo failed")


async def _run_demo(running: Dev, app: Path, stopping: asyncio.Event, *, to_the_end: bool) -> bool:
    """Run the demo until it ends or a signal stops the process."""
    demo = asyncio.create_task(run_demo(running, app, to_the_end=to_the_end))
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait({demo, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if demo.done():
        return demo.result()
    demo.cancel()
    await asyncio.gather(demo, return_exceptions=True)
    return False


def _say_addresses(settings: ServerSettings, running: Dev) -> None:
    print_err(
        f"  Control API  {running.running.control_url}\n"
        f"  Runner API   {running.running.runner_url}\n"
        f"  data folder  {settings.data}\n"
        f"  login        {settings.data / DEV_FILE.name} ({_explain_login(settings, running)})"
    )


def _explain_login(settings: ServerSettings, running: Dev) -> str:
    """Return how commands get the login: only that of the usual folder is found by itself."""
    if (settings.data / DEV_FILE.name).resolve() == DEV_FILE.resolve():
        return "found by `exclave` in this folder"
    return f"set EXCLAVE_URL={running.running.control_url} and EXCLAVE_TOKEN to the token in it"
