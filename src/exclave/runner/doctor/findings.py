"""Findings of the checks."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from exclave.base.errors import Problem
from exclave.client.transport import explain_cause, name_cause

LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: whether it passed, what was seen, and what to do about it."""

    name: str
    state: Literal["ok", "warn", "fail"]
    message: str
    fix: str = ""


def ok(name: str, message: str) -> Finding:
    """Return a finding that passed."""
    return Finding(name, "ok", message)


def warn(name: str, message: str, fix: str) -> Finding:
    """Return a finding that works with limitations."""
    return Finding(name, "warn", message, fix)


def fail(name: str, message: str, fix: str) -> Finding:
    """Return a finding that failed."""
    return Finding(name, "fail", message, fix)


def from_problem(name: str, problem: Problem) -> Finding:
    """Turn a problem into a finding."""
    return fail(name, problem.message, problem.advice)


async def within(name: str, check: Callable[[], Awaitable[Finding]]) -> Finding:
    """Run a check; an exception in it becomes a failed finding."""
    try:
        async with asyncio.timeout(LIMIT_S):
            return await check()
    except Problem as problem:
        return from_problem(name, problem)
    except OSError as error:
        detail = str(error) or f"no answer within {LIMIT_S:g} s"
        return fail(name, detail, explain_cause(name_cause(error)))
