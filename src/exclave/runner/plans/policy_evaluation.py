"""Evaluation of policies by `opa`: bounded in time and size; none passes without an answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from exclave.wire.spec_fields import RegoPolicy

PACKAGE: Final = "nuon"
"""The package that policies are written in."""
_MOST_CHARS: Final = 1000
_CANCELLED: Final = "eval_cancel_error"
ReadAnswer = Callable[[str, Json], list[PolicyFinding]]
"""Reads what the policy of a name answers."""


@dataclass(frozen=True, slots=True)
class PolicyLimits:
    """How much one policy may take."""

    seconds: float = 60.0
    answer_bytes: int = 16 << 20


DEFAULT_LIMITS: Final = PolicyLimits()


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of each policy, about which document."""

    document: bytes
    """The policy's `input`."""
    query: str = f"data.{PACKAGE}"
    driver: str = ""
    """Rules of our own beside the policy's, for the query."""
    limits: PolicyLimits = DEFAULT_LIMITS


async def evaluate_policies(
    context: JobContext,
    tool: str,
    policies: Sequence[RegoPolicy],
    question: Question,
    read: ReadAnswer,
) -> list[PolicyFinding]:
    """Return the findings of all policies; one that cannot be evaluated ends the job.

    The document is on disk only for as long as policies are evaluated.
    """
    workspace = context.workspace
    folder = workspace.folder / "policies"
    with workspace.touch():
        folder.mkdir(mode=0o700, exist_ok=True)
    document = folder / "input.json"
    workspace.write(document, question.document)
    drivers = []
    if question.driver:
        drivers.append(folder / "driver.rego")
        workspace.write(drivers[0], question.driver.encode())
    findings: list[PolicyFinding] = []
    try:
        for at, policy in enumerate(policies):
            file = folder / f"policy-{at:03d}.rego"
            workspace.write(file, policy.rego.encode())
            evaluation = Evaluation(context, tool, question, document, (file, *drivers))
            findings += read(policy.name, await evaluation.run(policy.name))
    finally:
        with workspace.touch():
            document.unlink(missing_ok=True)
    return findings


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One policy in files, and what is asked of it."""

    context: JobContext
    tool: str
    question: Question
    document: Path
    files: Sequence[Path]

    async def run(self, name: str) -> Json:
        """Evaluate with today's syntax, and with the old one if that cannot be read."""
        problems: list[str] = []
        for old_syntax in (False, True):
            answer, problem = await self._ask(old_syntax=old_syntax)
            if not problem:
                expressions = _first(answer.get("result")).get("expressions")
                return _first(expressions).get("value")
            problems.append(problem)
            if _was_cancelled(answer):
                break
        message = f"the policy `{name}` cannot be evaluated: {problems[0]}"
        raise WorkFailed(Reason.SYNTAX, message)

    async def _ask(self, *, old_syntax: bool) -> tuple[JsonObject, str]:
        """Return what `opa` answers, and what is wrong with that."""
        argv = opa.evaluate(
            self.tool,
            policies=self.files,
            document=self.document,
            query=self.question.query,
            limit_s=self.question.limits.seconds,
            old_syntax=old_syntax,
        )
        command = Command(argv, self.context.build_env(), self.document.parent)
        most = self.question.limits.answer_bytes
        printed = await self.context.capture(command, name="`opa eval`", most_bytes=most)
        if printed.truncated:
            return {}, f"it answers more than {most >> 10} KiB"
        answer = _read(printed.stdout)
        if printed.code == 0 and answer is not None and "errors" not in answer:
            return answer, ""
        return answer or {}, self._explain(answer or {}, printed.stderr)

    def _explain(self, answer: JsonObject, err: str) -> str:
        if _was_cancelled(answer):
            return f"it did not end within {self.question.limits.seconds:g} s"
        parts = []
        for error in _list_errors(answer)[:3]:
            message = text_or_empty(error.get("message"))
            row = object_or_empty(error.get("location")).get("row")
            parts += [f"line {row}: {message}" if row else message] if message else []
        return ("; ".join(parts) or err.strip() or "opa failed without a message")[:_MOST_CHARS]


def _list_errors(answer: JsonObject) -> list[JsonObject]:
    return [object_or_empty(error) for error in list_or_empty(answer.get("errors"))]


def _was_cancelled(answer: JsonObject) -> bool:
    return any(error.get("code") == _CANCELLED for error in _list_errors(answer))


def _read(out: str) -> JsonObject | None:
    """Return what OPA printed; None if it is not its JSON."""
    try:
        return parse_object(out, "the answer of opa")
    except ValueError:
        return None


def _first(values: Json) -> JsonObject:
    """Return the first object of a list; an empty one if there is none."""
    return object_or_empty(next(iter(list_or_empty(values)), None))
