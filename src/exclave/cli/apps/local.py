"""`exclave apps`: verbs for local app directories; `server` has the verbs that need a server."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from exclave.appconfig.read_app import CheckedApp, read_app
from exclave.appconfig.reading.references import Fetcher
from exclave.base.errors import InvalidInput
from exclave.cli.apps import findings as apps_text
from exclave.cli.apps import graph as apps_graph
from exclave.cli.root import SuggestingGroup
from exclave.cli.terminal import print_err, print_json, print_out

_ONLINE = ("create", "list", "get", "sync", "configs", "diff")


class _AppsGroup(SuggestingGroup):
    """The group of all verbs; imports those that need a server only when one is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all verbs, local ones first."""
        return [*(name for name in self.commands if name not in _ONLINE), *_ONLINE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb."""
        if cmd_name not in _ONLINE:
            return super().get_command(ctx, cmd_name)
        from exclave.cli.apps import server  # noqa: PLC0415 - the client is slow to load

        return server.group.get_command(ctx, cmd_name)


@click.group("apps", cls=_AppsGroup)
def group() -> None:
    """Create, validate, sync and compare apps."""


_directory = click.argument("directory", type=click.Path(path_type=Path), default=".")
_json = click.option("--json", "json_mode", is_flag=True, help="Print the result as JSON.")


def _command(name: str) -> Callable[[Callable[..., int | None]], click.Command]:
    """Return a decorator that makes a function a command without a client (see `deps.verb`)."""

    def decorate(body: Callable[..., int | None]) -> click.Command:
        def run(**arguments: object) -> None:
            click.get_current_context().exit(body(**arguments) or 0)

        run.__doc__ = body.__doc__
        run.__click_params__ = getattr(body, "__click_params__", [])  # type: ignore[attr-defined]
        return group.command(name)(_json(run))

    return decorate


@_command("validate")
@_directory
@click.option("--strict", is_flag=True, help="Treat unknown keys as errors.")
@click.option("--fetch", is_flag=True, help="Also download remote files that the app refers to.")
def validate(directory: Path, *, strict: bool, fetch: bool, json_mode: bool) -> int:
    """Check an app directory and list all findings; exit with 0 if there are no errors."""
    reading = read_app(directory, strict=strict, fetcher=_choose_fetcher() if fetch else None)
    if json_mode:
        print_json(apps_text.describe(reading))
    else:
        print_out(apps_text.write_findings(reading, colour=_wants_colour()))
    return 0 if reading.ok else 1


@_command("graph")
@_directory
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "dot", "mermaid", "json")),
    default="text",
    help="Output format.",
)
@click.option(
    "--input", "inputs", multiple=True, help="Show which components a change of this input affects."
)
def graph(directory: Path, *, form: str, inputs: tuple[str, ...], json_mode: bool) -> int:
    """Draw the dependencies between components."""
    reading = read_app(directory)
    unknown = set(inputs) - {declared.name for declared in reading.app.inputs}
    if unknown:
        raise InvalidInput(f"there is no input `{min(unknown)}`", hint="See inputs.toml.")
    if json_mode or form == "json":
        print_json(apps_graph.describe(reading, inputs))
    else:
        print_out(apps_graph.FORMS[form](reading.graph, inputs), newline=False)
    return _warn_of_errors(reading)


@_command("render")
@_directory
@click.option(
    "--values", type=click.Path(path_type=Path), help="JSON file with the state to render with."
)
@click.option(
    "--only", default="", help="Only render this part, such as `components.api` or `sandbox`."
)
def render(directory: Path, *, values: Path | None, only: str, json_mode: bool) -> int:
    """Render every templated field with a state, and list what the state lacks."""
    from exclave.cli.apps import render as apps_render  # noqa: PLC0415 - the other commands render nothing

    reading = read_app(directory)
    state = {} if values is None else _read_state(values)
    fields = apps_render.select(reading.app, state, only)
    if json_mode:
        print_json(apps_render.describe(reading.app, fields))
    else:
        print_out(apps_render.write(fields, colour=_wants_colour()))
    return _warn_of_errors(reading)


@_command("schema")
@click.argument("kind", default="")
def schema(kind: str, *, json_mode: bool) -> None:
    """Print the JSON Schema of a kind of file, or list the kinds (with --json: all schemas)."""
    from exclave.appconfig.catalog import KINDS, find_kind  # noqa: PLC0415 - as above
    from exclave.appconfig.schema import build_component_schema, build_schema  # noqa: PLC0415 - as above

    if kind == "component":
        print_json(build_component_schema())
    elif kind:
        print_json(build_schema(find_kind(kind)))
    elif json_mode:
        print_json({name: build_schema(file_kind) for name, file_kind in KINDS.items()})
    else:
        width = max(map(len, KINDS))
        print_out(
            "\n".join(f"{name:<{width}}  {file_kind.where}" for name, file_kind in KINDS.items())
        )


@_command("new")
@click.argument("name", type=click.Path(path_type=Path))
def new(name: Path, *, json_mode: bool) -> None:
    """Create a directory with a small working app."""
    from exclave.appconfig.starter import write_starter  # noqa: PLC0415 - as above

    files = write_starter(name)
    if json_mode:
        print_json({"directory": str(name), "files": files})
        return
    print_out("\n".join(f"{name}/{file}" for file in files))
    print_err(f"\nNext: exclave apps validate {name}")


def _read_state(file: Path) -> Mapping[str, object]:
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"cannot read `{file}`: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"`{file}` is not JSON: {error}") from error
    if not isinstance(state, dict):
        raise InvalidInput(f"`{file}` does not hold an object", hint='Write {"nuon": {…}}.')
    return state


def _choose_fetcher() -> Fetcher:
    from exclave.appconfig.reading.fetching import HttpsFetcher  # noqa: PLC0415 - network code, if asked for

    return HttpsFetcher()


def _warn_of_errors(reading: CheckedApp) -> int:
    if not reading.ok:
        print_err("This app has errors; see `exclave apps validate`.")
    return 0 if reading.ok else 1


def _wants_colour() -> bool:
    world = click.get_current_context().find_root().obj
    environment = getattr(world, "env", world) or {}
    return sys.stdout.isatty() and not environment.get("NO_COLOR")
