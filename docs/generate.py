# ruff: noqa: INP001 - a program beside the pages it writes, not a package
"""Generates the reference pages of settings, commands, problem codes and exit reasons.

`python docs/generate.py` writes them; a test compares them with the committed pages.
"""

import ast
import importlib
import inspect
import pkgutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

import exclave
from exclave.api.problems import STATUS
from exclave.base.errors import Problem
from exclave.cli.errors import EXIT_CODES
from exclave.cli.root import build_root
from exclave.domain import timings
from exclave.domain.jobs import Reason
from exclave.domain.quotas import Quotas
from exclave.domain.timings import BOUNDS, Timings
from exclave.main.entry import PROCESSES
from exclave.main.environment import COMMAND_LINE, QUOTA
from exclave.main.settings import PREFIX, RunnerSettings, ServerSettings, Settings

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by `python docs/generate.py`. Change the code, then run it again. -->\n"

TEXTS = tomllib.loads((Path(__file__).parent / "texts.toml").read_text(encoding="utf-8"))

_INTRO = TEXTS["intro"]
_LOCAL = frozenset({"wire", "runner", "client", "cli", "template", "appconfig"})
"""Rooms whose problems are never sent over HTTP."""


def write_settings() -> str:
    """Return the page of all settings."""
    parts = [
        NOTE,
        "# Settings\n",
        "Every setting is an environment variable. Command-line options override them.",
        _INTRO["settings"] + "\n",
        "## Control plane\n",
        *_write_fields(ServerSettings),
        "\n" + _INTRO["s3"] + "\n",
        "## Runner\n",
        *_write_fields(RunnerSettings),
        "\n## Command line\n",
        "| variable | meaning |\n|---|---|",
        *(f"| `{PREFIX}{name}` | {TEXTS['command_line'][name]} |" for name in sorted(COMMAND_LINE)),
        "\n## Quotas\n",
        _INTRO["quotas"] + "\n",
        "| variable | default | meaning |\n|---|---|---|",
        *_write_quotas(),
        "\n## Timings\n",
        _INTRO["timings"] + "\n",
        "| variable | default | bounds | meaning |\n|---|---|---|---|",
        *_write_timings(),
        "\nThe control plane refuses to start with unsafe combinations of values:\n",
        *(
            f"- `{small}` < `{large}`: otherwise {why}."
            for small, large, why in timings._ORDERS  # noqa: SLF001 - the page is about them
        ),
        _INTRO["unsafe"],
    ]
    return "\n".join(parts) + "\n"


def write_cli() -> str:
    """Return the page of all commands."""
    root = build_root(PROCESSES)
    parts = [
        NOTE,
        "# Command line\n",
        _INTRO["cli"] + "\n",
        "| exit code | meaning |\n|---|---|",
        "| 0 | success |\n| 1 | refused or failed |",
        "| 2 | invalid command line or input |\n| 3 | a bug in Exclave |",
        "| 130 | interrupted by Ctrl-C |\n",
    ]
    context = click.Context(root, info_name="exclave")
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        if command is None:
            continue
        parts.append(f"## exclave {name}\n")
        parts.extend(_write_command(command, click.Context(command, context, info_name=name)))
    return "\n".join(parts).rstrip() + "\n"


def write_problems() -> str:
    """Return the page of all problem codes."""
    rows = [_write_problem(kind) for kind in list_problems()]
    for code, (status, what, fix) in TEXTS["edge_problems"].items():
        rows.append(f"| `{code}` | {status} | 1 | {what} | {fix} |")
    parts = [
        NOTE,
        "# Problem codes\n",
        _INTRO["problems"] + "\n",
        "| code | HTTP | exit | what happened | what to do |\n|---|---|---|---|---|",
        *sorted(rows),
    ]
    return "\n".join(parts) + "\n"


def write_reasons() -> str:
    """Return the page of all exit reasons."""
    parts = [
        NOTE,
        "# Exit reasons\n",
        "Why a job or an execution ended. `reason` is one of these.\n",
        "| reason | meaning | what to do |\n|---|---|---|",
        *_write_reasons(),
        "\n" + _INTRO["reasons"],
    ]
    return "\n".join(parts) + "\n"


def _write_reasons() -> Iterator[str]:
    for reason in Reason:
        meaning, advice = TEXTS["reasons"][reason]
        yield f"| `{reason}` | {meaning} | {advice} |"


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": write_settings,
    "cli.md": write_cli,
    "problem-codes.md": write_problems,
    "exit-reasons.md": write_reasons,
}


def list_problems() -> list[type[Problem]]:
    """Return every public problem class of the package, by code.

    Private ones are control flow inside a module and never reach a caller.
    """
    for module in pkgutil.walk_packages(exclave.__path__, "exclave."):
        if "migrations" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    classes = {kind for kind in _walk(Problem) if kind.__module__.startswith("exclave.")}
    public = (kind for kind in classes if not kind.__name__.startswith("_"))
    return sorted(public, key=lambda kind: kind.code)


def _walk(kind: type[Problem]) -> Iterator[type[Problem]]:
    for below in kind.__subclasses__():
        yield below
        yield from _walk(below)


def _write_problem(kind: type[Problem]) -> str:
    local = kind.__module__.split(".")[1] in _LOCAL
    status = "-" if local else str(STATUS[kind.kind].value)
    what = inspect.getdoc(kind) or ""
    line = _flat(what.partition("\n\n")[0])
    return f"| `{kind.code}` | {status} | {EXIT_CODES[kind.kind]} | {line} | {_flat(kind.hint)} |"


def _write_fields(kind: type[Settings]) -> Iterator[str]:
    yield "| variable | default | bounds | meaning |\n|---|---|---|---|"
    for name, field in kind.model_fields.items():
        if name in {"timings", "quotas"}:
            continue
        limits = {type(limit).__name__: limit for limit in field.metadata}
        low, high = limits.get("Ge"), limits.get("Le")
        bounds = f"{low.ge} to {high.le}" if low and high else ""
        default = f"`{field.default}`" if field.default not in (None, "") else ""
        meaning = _flat(field.description or "")
        yield f"| `{PREFIX}{name.upper()}` | {default} | {bounds} | {meaning} |"


def _write_timings() -> Iterator[str]:
    texts = dict(_read_docstrings(Timings))
    for field in fields(Timings):
        low, high = map(_number, BOUNDS[field.name])
        default = _number(field.default) if isinstance(field.default, int | float) else ""
        yield (
            f"| `{PREFIX}{field.name.upper()}` | {default} | {low} to {high}"
            f" | {texts[field.name]} |"
        )


def _write_quotas() -> Iterator[str]:
    texts = dict(_read_docstrings(Quotas))
    for field in fields(Quotas):
        yield (f"| `{PREFIX}{QUOTA}{field.name.upper()}` | {field.default} | {texts[field.name]} |")


def _read_docstrings(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the docstring below each field of a dataclass, read from its source."""
    tree = ast.parse(inspect.getsource(kind))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    for node, text in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            value = text.value if isinstance(text, ast.Expr) else None
            yield node.target.id, _flat(str(getattr(value, "value", "")))


def _write_command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"{_flat(command.help or '')}\n"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```\n{usage}\n```\n"
    params = command.get_params(context)
    options = [option for option in params if isinstance(option, click.Option)]
    rows = [_write_option(option) for option in options if "--help" not in option.opts]
    if rows:
        yield "| option | meaning |\n|---|---|"
        yield from rows
        yield ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                inner = click.Context(below, context, info_name=name)
                yield f"### {inner.command_path}\n"
                yield from _write_command(below, inner)


def _write_option(option: click.Option) -> str:
    value = "" if option.is_flag else f" {option.metavar or _name_type(option)}"
    text = _flat(option.help or "")
    if option.required:
        text += " Required."
    if option.show_default and option.default is not None and not option.is_flag:
        text += f" Default: `{option.default}`."
    names = ", ".join(f"`{name}{value}`" for name in option.opts)
    return f"| {names} | {text.strip()} |".replace("NAME|ID", "NAME\\|ID")


def _name_type(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return " or ".join(map(str, option.type.choices))
    return option.type.name.upper()


def _number(value: float) -> str:
    return f"{value:.15g}"


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main(argv: Iterable[str]) -> int:
    """Write the pages; with `--check`, only report which of them are out of date."""
    check = "--check" in argv
    stale = [name for name, write in PAGES.items() if _read(REFERENCE / name) != write()]
    for name in stale:
        if not check:
            (REFERENCE / name).write_text(PAGES[name](), encoding="utf-8")
        sys.stderr.write(f"{'out of date' if check else 'written'}: docs/reference/{name}\n")
    return 1 if check and stale else 0


def _read(file: Path) -> Any:
    return file.read_text(encoding="utf-8") if file.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
