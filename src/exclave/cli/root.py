"""The root of the command line: a noun is imported when one of its commands is used."""

import difflib
import gc
import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from exclave import __version__
from exclave.base.errors import Problem
from exclave.cli import errors
from exclave.cli.terminal import print_err


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """The module and attribute of a command, and its short help."""

    module: str
    attribute: str
    help: str


NOUNS: Mapping[str, LazyCommand] = {
    "apps": LazyCommand(
        "exclave.cli.apps.local", "group", "Create, validate, sync and compare apps."
    ),
    "auth": LazyCommand("exclave.cli.auth", "group", "Log in, log out, show the current login."),
    "orgs": LazyCommand("exclave.cli.orgs", "group", "Show and create orgs (tenants)."),
    "tokens": LazyCommand("exclave.cli.tokens", "group", "Manage API tokens."),
    "installs": LazyCommand(
        "exclave.cli.installs.installs",
        "group",
        "Manage installs: an app in one customer's account.",
    ),
    "actions": LazyCommand(
        "exclave.cli.actions", "group", "Run actions of an install and list their runs."
    ),
    "runbooks": LazyCommand("exclave.cli.actions", "runbooks", "Run runbooks of an install."),
    "drift": LazyCommand(
        "exclave.cli.drift", "group", "Show, accept and reopen what scans for drift found."
    ),
    "builds": LazyCommand(
        "exclave.cli.builds", "group", "Manage builds: the artifacts of an app's components."
    ),
    "registry": LazyCommand(
        "exclave.cli.registry", "group", "Manage the OCI registry and its credentials."
    ),
    "runners": LazyCommand("exclave.cli.runners", "group", "Enrol, show and revoke runners."),
    "workflows": LazyCommand(
        "exclave.cli.workflows.workflows", "group", "Run, watch and approve workflows."
    ),
    "jobs": LazyCommand("exclave.cli.jobs", "group", "Show and cancel jobs: what runners execute."),
    "logs": LazyCommand("exclave.cli.logs", "group", "Read and search the logs of jobs."),
    "audit": LazyCommand(
        "exclave.cli.audit", "group", "Show the audit log: who did what, and why."
    ),
}


class SuggestingGroup(click.Group):
    """A group that suggests the nearest command for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names."""
        name = args[0] if args else ""
        names = self.list_commands(ctx)
        if name and not name.startswith("-") and name not in names:
            near = difflib.get_close_matches(name, names, 1)
            guess = f" Did you mean `{near[0]}`?" if near else ""
            ctx.fail(f"There is no command `{ctx.command_path} {name}`.{guess}")
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
    """A group that knows names and help texts, and imports a command when it is invoked."""

    def __init__(self, lazy: Mapping[str, LazyCommand], **settings: Any) -> None:
        super().__init__(**settings)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands in the order of the table."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in self.lazy:
            return None
        where = self.lazy[cmd_name]
        with _pause_collector():
            command = getattr(importlib.import_module(where.module), where.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{where.module}.{where.attribute} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.help) for name, lazy in self.lazy.items()])


@contextmanager
def _pause_collector() -> Iterator[None]:
    """Collect no garbage meanwhile: looking through the modules takes a seventh of an import."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def build_root(extra: Mapping[str, LazyCommand] | None = None) -> click.Group:
    """Return the `exclave` command with the nouns and what the composition root adds."""
    root = LazyGroup(
        {**NOUNS, **(extra or {})},
        name="exclave",
        help="Deliver and operate software inside your customers' own cloud accounts.",
        epilog="Every command takes --json. EXCLAVE_URL and EXCLAVE_TOKEN win over `auth login`.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        callback=lambda: None,
    )
    return click.version_option(__version__, message="exclave %(version)s")(root)


def run(root: click.Group, argv: Sequence[str], obj: object) -> int:
    """Run a command line and return its exit code.

    `obj` is the environment (a mapping), or the `Deps` of a test. A reader that closes the
    pipe ends the process with exit code 1 and no message (click does that).
    """
    json_mode = "--json" in argv
    try:
        code = root.main(list(argv), prog_name="exclave", standalone_mode=False, obj=obj)
    except Problem as problem:
        return errors.report_problem(problem, json_mode=json_mode)
    except click.exceptions.NoArgsIsHelpError as error:
        print_err(error.format_message())
        return errors.USAGE
    except click.ClickException as error:
        return errors.report_usage(error, json_mode=json_mode)
    except click.Abort as abort:
        if isinstance(abort.__cause__, KeyboardInterrupt):
            return errors.INTERRUPTED
        print_err("Aborted; nothing was changed.")
        return errors.FAILED
    except Exception as error:  # noqa: BLE001 - the edge of the process: anything else is a bug
        debug = isinstance(obj, Mapping) and obj.get("EXCLAVE_DEBUG") == "1"
        return errors.report_bug(error, json_mode=json_mode, debug=debug)
    return code if isinstance(code, int) else errors.OK
