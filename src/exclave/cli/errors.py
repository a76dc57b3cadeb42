"""How a failure ends the program: what is said on stderr, and with which exit code."""

import traceback
from collections.abc import Mapping
from typing import Final

import click

from exclave.base.errors import Kind, Problem
from exclave.cli.terminal import print_err, print_json

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
BUG: Final = 3
INTERRUPTED: Final = 130

EXIT_CODES: Mapping[Kind, int] = {
    Kind.INVALID: USAGE,
    Kind.UNAUTHENTICATED: FAILED,
    Kind.FORBIDDEN: FAILED,
    Kind.NOT_FOUND: FAILED,
    Kind.CONFLICT: FAILED,
    Kind.GONE: FAILED,
    Kind.TOO_LARGE: FAILED,
    Kind.TOO_MANY: FAILED,
    Kind.FULL: FAILED,
    Kind.UNAVAILABLE: FAILED,
}


def report_problem(problem: Problem, *, json_mode: bool) -> int:
    """Say what happened and what to do."""
    told = {"code": problem.code, "kind": problem.kind, "facts": dict(problem.facts)}
    _tell(problem.message, problem.advice, told, json_mode=json_mode)
    return EXIT_CODES[problem.kind]


def report_usage(error: click.ClickException, *, json_mode: bool) -> int:
    """Say what is wrong with the command line, and where its help is."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"See `{context.command_path} --help`." if context else ""
    _tell(error.format_message(), hint, {"code": "usage", "kind": "usage"}, json_mode=json_mode)
    return USAGE


def report_bug(error: Exception, *, json_mode: bool, debug: bool) -> int:
    """Say that this is our fault; the traceback is shown to those who ask for it."""
    if debug:
        print_err("".join(traceback.format_exception(error)), newline=False)
    _tell(
        f"this is a bug in exclave: {type(error).__name__}: {error}",
        "Please report it; EXCLAVE_DEBUG=1 shows where it happened.",
        {"code": "bug", "kind": "bug"},
        json_mode=json_mode,
    )
    return BUG


def _tell(message: str, hint: str, facts: Mapping[str, object], *, json_mode: bool) -> None:
    if json_mode:
        error = {**facts, "message": message, "hint": hint}
        print_json({"error": error}, indent=None, err=True)
        return
    print_err(f"error: {message}")
    if hint:
        print_err(f"\nhint: {hint}")
