"""Evaluation of policies on a plan with `opa`; a policy that cannot be evaluated fails the plan."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from exclave.runner.commands import opa
from exclave.runner.outcomes import WorkFailed
from exclave.runner.terraform.tool_context import TerraformContext
from exclave.wire.jobs import Reason
from exclave.wire.specs import RegoPolicy
from exclave.wire.terraform import PolicyFinding

PACKAGE = "nuon"
_LEVELS: Final = ("deny", "warn", "pass")
"""The rules of a policy: the first fails the plan, the others are shown with it."""
_MOST_CHARS = 1000


async def check_policies(tf: TerraformContext, tool: str, plan: str) -> list[PolicyFinding]:
    """Evaluate all policies of the job on the plan's JSON; return denials first, passes last."""
    folder = tf.context.workspace.folder / "policies"
    with tf.context.workspace.touch():
        folder.mkdir(mode=0o700, exist_ok=True)
    document = folder / "input.json"
    tf.context.workspace.write(document, f'{{"plan": {plan}}}'.encode())
    findings: list[PolicyFinding] = []
    try:
        for at, policy in enumerate(tf.spec.policies):
            file = folder / f"policy-{at:03d}.rego"
            tf.context.workspace.write(file, policy.rego.encode())
            value = await _evaluate(tf, tool, policy, file, document)
            findings += read_findings(policy.name, value, tf.context.mask)
    finally:
        with tf.context.workspace.touch():
            document.unlink(missing_ok=True)
    for finding in findings:
        tf.context.log.system(f"policy {finding.name}: {finding.level}: {finding.message}")
    return sorted(findings, key=lambda finding: _LEVELS.index(finding.level))


def read_findings(name: str, value: Any, mask: Callable[[str], str]) -> list[PolicyFinding]:
    """Return the findings of a policy; raise if it has none of the known rules."""
    rules = value if isinstance(value, dict) else {}
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
    tf: TerraformContext, tool: str, policy: RegoPolicy, file: Path, document: Path
) -> Any:
    """Evaluate a policy as Rego v1, or as v0 if it cannot be parsed."""
    problems = []
    for old_syntax in (False, True):
        argv = opa.evaluate(
            tool, policy=file, document=document, package=PACKAGE, old_syntax=old_syntax
        )
        printed = await tf.capture("opa eval", argv, cwd=file.parent)
        told = _read(printed.stdout)
        if printed.code == 0 and "errors" not in told:
            results = told.get("result") or [{}]
            return (results[0].get("expressions") or [{}])[0].get("value")
        problems.append(_explain(told, printed.stderr))
    message = f"the policy `{policy.name}` cannot be evaluated: {problems[0]}"
    raise WorkFailed(Reason.SYNTAX, message)


_WITHOUT_MESSAGE: Final = {
    "deny": "it says no, without a message",
    "warn": "it warns, without a message",
    "pass": "it passes, without a message",
}


def _list_messages(value: Any, default: str) -> Iterator[str]:
    match value:
        case None | False:
            return
        case True:
            yield default
        case str():
            yield value
        case list():
            for message in value:
                yield from _list_messages(message, default)
        case dict():
            told = next((value[key] for key in ("msg", "message", "reason") if key in value), None)
            yield str(told) if told is not None else json.dumps(value, ensure_ascii=False)
        case _:
            yield str(value)


def _read(out: str) -> dict[str, Any]:
    try:
        told = json.loads(out)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _explain(told: dict[str, Any], err: str) -> str:
    errors = told.get("errors") or [{"message": err.strip() or "opa failed without a word"}]
    parts = []
    for error in errors[:3]:
        row = (error.get("location") or {}).get("row")
        parts.append(f"line {row}: {error.get('message')}" if row else str(error.get("message")))
    return "; ".join(parts)[:_MOST_CHARS]
