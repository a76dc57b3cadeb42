"""Evaluation of policies on a plan with `opa`; a policy that cannot be evaluated fails the plan."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from exclave.base.json_values import (
    Json,
    JsonObject,
    list_or_empty,
    object_or_empty,
    parse_object,
    text_or_empty,
)
from exclave.runner.commands import opa
from exclave.runner.jobs.context import JobContext
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.wire.jobs import Reason
from exclave.wire.plans import PolicyFinding
from exclave.wire.specs import RegoPolicy

PACKAGE = "nuon"
_LEVELS: Final = ("deny", "warn", "pass")
"""The rules of a policy: the first fails the plan, the others are shown with it."""
_MOST_CHARS = 1000


async def check_policies(
    context: JobContext, tool: str, policies: Sequence[RegoPolicy], subject: bytes
) -> list[PolicyFinding]:
    """Evaluate all policies on the subject's JSON; return denials first, passes last."""
    workspace = context.workspace
    folder = workspace.folder / "policies"
    with workspace.touch():
        folder.mkdir(mode=0o700, exist_ok=True)
    document = folder / "input.json"
    workspace.write(document, subject)
    findings: list[PolicyFinding] = []
    try:
        for at, policy in enumerate(policies):
            file = folder / f"policy-{at:03d}.rego"
            workspace.write(file, policy.rego.encode())
            value = await _evaluate(context, tool, policy, file, document)
            findings += read_findings(policy.name, value, context.mask)
    finally:
        with workspace.touch():
            document.unlink(missing_ok=True)
    for finding in findings:
        context.log.system(f"policy {finding.name}: {finding.level}: {finding.message}")
    return sorted(findings, key=lambda finding: _LEVELS.index(finding.level))


def read_findings(name: str, value: Json, mask: Callable[[str], str]) -> list[PolicyFinding]:
    """Return what the rules of a policy say; a policy that has none of them is an error."""
    rules = object_or_empty(value)
    if not any(level in rules for level in _LEVELS):
        message = (
            f"the policy `{name}` has no `deny`, `warn` or `pass` in the package `{PACKAGE}`:"
            " it checks nothing"
        )
        raise WorkFailed(Reason.SYNTAX, message)
    return [
        PolicyFinding(name=name, level=level, message=mask(message)[:_MOST_CHARS])
        for level in _LEVELS
        for message in _list_messages(rules.get(level), _WITHOUT_MESSAGE[level])
    ]


async def _evaluate(
    context: JobContext, tool: str, policy: RegoPolicy, file: Path, document: Path
) -> Json:
    """Evaluate with today's syntax, and with the old one if that cannot be read."""
    problems = []
    env = context.build_env()
    for old_syntax in (False, True):
        argv = opa.evaluate(
            tool, policy=file, document=document, package=PACKAGE, old_syntax=old_syntax
        )
        command = Command(argv, env, file.parent)
        printed = await context.capture(command, name="`opa eval`")
        answer = _read(printed.stdout)
        if printed.code == 0 and answer is not None and "errors" not in answer:
            expressions = _first(answer.get("result")).get("expressions")
            return _first(expressions).get("value")
        problems.append(_explain(answer or {}, printed.stderr))
    message = f"the policy `{policy.name}` cannot be evaluated: {problems[0]}"
    raise WorkFailed(Reason.SYNTAX, message)


_WITHOUT_MESSAGE: Final = {
    "deny": "it says no, without a message",
    "warn": "it warns, without a message",
    "pass": "it passes, without a message",
}


def _list_messages(value: Json, default: str) -> Iterator[str]:
    match value:
        case None | False:
            return
        case True:
            yield default
        case str():
            yield value
        case Sequence():
            for element in value:
                yield from _list_messages(element, default)
        case Mapping():
            message = next(
                (value[key] for key in ("msg", "message", "reason") if key in value), None
            )
            yield str(message) if message is not None else json.dumps(value, ensure_ascii=False)
        case _:
            yield str(value)


def _read(out: str) -> JsonObject | None:
    """Return what OPA printed; None if it is not its JSON."""
    try:
        return parse_object(out, "the answer of opa")
    except ValueError:
        return None


def _first(values: Json) -> JsonObject:
    """Return the first object of a list; an empty one if there is none."""
    return object_or_empty(next(iter(list_or_empty(values)), None))


def _explain(answer: JsonObject, err: str) -> str:
    parts = []
    for error in map(object_or_empty, list_or_empty(answer.get("errors"))[:3]):
        message = text_or_empty(error.get("message"))
        row = object_or_empty(error.get("location")).get("row")
        parts += [f"line {row}: {message}" if row else message] if message else []
    return ("; ".join(parts) or err.strip() or "opa failed without a word")[:_MOST_CHARS]
