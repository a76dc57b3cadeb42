"""Policies on one document, such as the plan of a module or a built image."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from exclave.base.json_values import Json, object_or_empty
from exclave.runner.jobs.context import JobContext
from exclave.runner.logs.masking import Mask
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.policy_evaluation import PACKAGE, Question, evaluate_policies
from exclave.wire.jobs import Reason
from exclave.wire.plans import PolicyFinding, PolicyLevel
from exclave.wire.spec_fields import RegoPolicy

LEVELS: Final[Sequence[PolicyLevel]] = ("deny", "warn", "pass")
"""The rules of a policy: the first refuses, the others are shown."""
MOST_CHARS: Final = 1000
"""Maximum length of a finding."""
_WITHOUT_MESSAGE: Final = {
    "deny": "it says no, without a message",
    "warn": "it warns, without a message",
    "pass": "it passes, without a message",
}


async def check_policies(
    context: JobContext, tool: str, policies: Sequence[RegoPolicy], subject: bytes
) -> list[PolicyFinding]:
    """Evaluate all policies on the subject's JSON; return denials first, passes last."""

    def read(name: str, answer: Json) -> list[PolicyFinding]:
        return read_findings(name, answer, context.mask)

    findings = await evaluate_policies(context, tool, policies, Question(subject), read)
    return log_findings(context, findings)


def read_findings(name: str, value: Json, mask: Mask) -> list[PolicyFinding]:
    """Return what the rules of a policy say; a policy that has none of them is an error."""
    rules = object_or_empty(value)
    if not any(level in rules for level in LEVELS):
        message = (
            f"the policy `{name}` has no `deny`, `warn` or `pass` in the package `{PACKAGE}`:"
            " it checks nothing"
        )
        raise WorkFailed(Reason.SYNTAX, message)
    return [
        PolicyFinding(name=name, level=level, message=mask(message)[:MOST_CHARS])
        for level in LEVELS
        for message in list_messages(rules.get(level), level)
    ]


def log_findings(context: JobContext, findings: Iterable[PolicyFinding]) -> list[PolicyFinding]:
    """Write findings to the job's log; return them, denials first, passes last."""
    ordered = sorted(findings, key=lambda finding: LEVELS.index(finding.level))
    for finding in ordered:
        about = f"{finding.resource}: " if finding.resource else ""
        context.log.system(f"policy {finding.name}: {finding.level}: {about}{finding.message}")
    return ordered


def list_messages(value: Json, level: PolicyLevel) -> Iterator[str]:
    """Yield the messages that a rule gives: texts, objects with a message, or plain true."""
    match value:
        case None | False:
            return
        case True:
            yield _WITHOUT_MESSAGE[level]
        case str():
            yield value
        case Sequence():
            for element in value:
                yield from list_messages(element, level)
        case Mapping():
            message = next(
                (value[key] for key in ("msg", "message", "reason") if key in value), None
            )
            yield str(message) if message is not None else json.dumps(value, ensure_ascii=False)
        case _:
            yield str(value)
