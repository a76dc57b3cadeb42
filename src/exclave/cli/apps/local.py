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
    if reading.ok and reading.app.cloud not in {"", "local"}:
        from exclave.stacks.building.directory import check_stack  # noqa: PLC0415 - clouds only

        reading = check_stack(reading)
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


@_command("stack")
@_directory
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the files; other files in it are kept.",
)
@click.option("--cloud", default="", help="Cloud of the Stack.  [default: that of the app]")
@click.option("--region", default="", help="Region of the account, as templates read it.")
@click.option("--form", "forms", multiple=True, help="Only write this form.  [default: all]")
@click.option(
    "--input", "pairs", multiple=True, metavar="NAME=VALUE", help="Set an input of the install."
)
@click.option("--runner-url", default="", help="Address of the Runner API that runners call.")
def stack(
    directory: Path,
    out: Path,
    *,
    cloud: str,
    region: str,
    forms: tuple[str, ...],
    pairs: tuple[str, ...],
    runner_url: str,
    json_mode: bool,
) -> int:
    """Write the Stack of an app as a customer would get it, with a report of its permissions.

    No server is needed: what an install decides has values of an example.
    """
    from exclave.cli.apps import stack as apps_stack  # noqa: PLC0415 - the other commands make none

    return apps_stack.write_stack(
        directory,
        out,
        cloud=cloud,
        region=region,
        forms=forms,
        inputs=_read_pairs(pairs),
        runner_url=runner_url,
        json_mode=json_mode,
        colour=_wants_colour(),
    )


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


def _read_pairs(pairs: tuple[str, ...]) -> Mapping[str, str]:
    values = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise InvalidInput(f"`{pair}` is not NAME=VALUE", hint="Write --input size=large.")
        values[name] = value
    return values


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
