"""Reporting of failures: the message on stderr and the exit code."""

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
    """Print a problem and its hint; return the exit code."""
    details = {"code": problem.code, "kind": problem.kind, "facts": dict(problem.facts)}
    _print_error(problem.message, problem.advice, details, json_mode=json_mode)
    return EXIT_CODES[problem.kind]


def report_usage(error: click.ClickException, *, json_mode: bool) -> int:
    """Print an error of the command line and where its help is; return the exit code."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"See `{context.command_path} --help`." if context else ""
    _print_error(
        error.format_message(), hint, {"code": "usage", "kind": "usage"}, json_mode=json_mode
    )
    return USAGE


def report_bug(error: Exception, *, json_mode: bool, debug: bool) -> int:
    """Print that this is a bug, with a traceback if `debug`; return the exit code."""
    if debug:
        print_err("".join(traceback.format_exception(error)), newline=False)
    _print_error(
        f"this is a bug in exclave: {type(error).__name__}: {error}",
        "Please report it; EXCLAVE_DEBUG=1 shows where it happened.",
        {"code": "bug", "kind": "bug"},
        json_mode=json_mode,
    )
    return BUG


def _print_error(message: str, hint: str, facts: Mapping[str, object], *, json_mode: bool) -> None:
    if json_mode:
        error = {**facts, "message": message, "hint": hint}
        print_json({"error": error}, indent=None, err=True)
        return
    print_err(f"error: {message}")
    if hint:
        print_err(f"\nhint: {hint}")
