"""Policies on the objects of a plan: each is reviewed as an admission webhook would see it."""

import asyncio
import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from exclave.base.json_values import Json, JsonObject, object_or_empty, text_or_empty
from exclave.base.secrets import Secret
from exclave.runner.jobs.context import JobContext
from exclave.runner.logs.masking import Mask
from exclave.runner.logs.secret_spellings import is_maskable
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.policies import LEVELS, MOST_CHARS, list_messages, log_findings
from exclave.runner.plans.policy_evaluation import (
    DEFAULT_LIMITS,
    PACKAGE,
    PolicyLimits,
    Question,
    evaluate_policies,
)
from exclave.wire.jobs import Reason
from exclave.wire.plans import PlanAction, PlanDocument, PolicyFinding, PolicyLevel
from exclave.wire.spec_fields import RegoPolicy

MOST_FINDINGS: Final = 200
"""Most findings that are listed of one policy and level; the rest are counted."""
_OPERATIONS: Final[Mapping[PlanAction, str]] = {
    "create": "CREATE",
    "run": "CREATE",
    "update": "UPDATE",
    "replace": "UPDATE",
    "no-op": "UPDATE",
    "delete": "DELETE",
}
"""The operation that a policy sees; an object that is only kept is not reviewed."""
_QUERY: Final = "data.exclave_reviews.answers"
_DRIVER: Final = "package exclave_reviews\n\nimport rego.v1\n" + "".join(
    f"""
answers["{level}"][at] := answer if {{
	some at, review in input.reviews
	answer := data.{PACKAGE}.{level} with input as {{"review": review, "plan": input.plan}}
}}
"""
    for level in LEVELS
)
"""Asks a policy about every review in one evaluation: one process, one parse of the input."""


class ReviewedObject(NamedTuple):
    """What happens to one object of a plan."""

    action: PlanAction
    live: JsonObject | None
    """The object as it was found; None if there is none."""
    wanted: JsonObject | None
    """The object as it will be stored; None if it will be removed."""


async def check_reviews(
    context: JobContext,
    tool: str,
    policies: Sequence[RegoPolicy],
    objects: Sequence[ReviewedObject],
    document: PlanDocument,
    *,
    limits: PolicyLimits = DEFAULT_LIMITS,
) -> list[PolicyFinding]:
    """Evaluate all policies on each object; return denials first, passes last.

    Policies see the data of Secrets. Neither the log nor a finding repeats it.
    """
    values = [value for entry in objects for value in (entry.live, entry.wanted) if value]
    secrets = await asyncio.to_thread(list_secret_values, values)
    await asyncio.to_thread(context.log.hide, secrets)
    reviews = make_reviews(objects)
    subject = {"reviews": reviews, "plan": document.model_dump(mode="json", by_alias=True)}
    data = await asyncio.to_thread(lambda: json.dumps(subject).encode())

    def read(name: str, answers: Json) -> list[PolicyFinding]:
        return read_review_findings(name, answers, reviews, context.mask)

    question = Question(data, query=_QUERY, driver=_DRIVER, limits=limits)
    findings = await evaluate_policies(context, tool, policies, question, read)
    return log_findings(context, findings)


def make_reviews(objects: Sequence[ReviewedObject]) -> list[JsonObject]:
    """Return what policies see of the objects, with the fields of an admission review.

    As admission policies expect it, `object` of a removal is the object that is removed.
    """
    return [_make_review(entry) for entry in objects if entry.action in _OPERATIONS]


def list_secret_values(objects: Iterable[JsonObject]) -> list[Secret]:
    """Return the values in the Secrets among objects that are long enough to be masked."""
    texts = {
        text
        for value in objects
        if (value.get("apiVersion"), value.get("kind")) == ("v1", "Secret")
        for text in _list_values(value)
    }
    return [Secret(text) for text in sorted(texts) if is_maskable(text)]


def read_review_findings(
    name: str, answers: Json, reviews: Sequence[JsonObject], mask: Mask
) -> list[PolicyFinding]:
    """Return what a policy says about the objects; silence about one of them is an error."""
    by_level = {level: object_or_empty(object_or_empty(answers).get(level)) for level in LEVELS}
    for at, review in enumerate(reviews):
        if not any(str(at) in by_level[level] for level in LEVELS):
            message = (
                f"the policy `{name}` decides nothing about {mask(_write_address(review))}: none of"
                f" `deny`, `warn` and `pass` has a value in the package `{PACKAGE}`. Write rules as"
                " `deny contains msg if { … }`"
            )
            raise WorkFailed(Reason.SYNTAX, message)
    return [
        finding
        for level in LEVELS
        for finding in _read_level(name, level, by_level[level], reviews, mask)
    ]


def _read_level(
    name: str, level: PolicyLevel, answers: JsonObject, reviews: Sequence[JsonObject], mask: Mask
) -> Iterator[PolicyFinding]:
    """Yield the findings of one level; the same message about several objects is one finding."""
    about: dict[str, list[int]] = {}
    for at in range(len(reviews)):
        for message in dict.fromkeys(list_messages(answers.get(str(at)), level)):
            about.setdefault(message, []).append(at)
    for message, positions in list(about.items())[:MOST_FINDINGS]:
        text = mask(message)[:MOST_CHARS]
        if len(positions) > 1:
            text += f" (and {len(positions) - 1} more objects)"
        address = mask(_write_address(reviews[positions[0]]))
        yield PolicyFinding(name=name, level=level, message=text, resource=address)
    if len(about) > MOST_FINDINGS:
        text = f"and {len(about) - MOST_FINDINGS} more findings"
        yield PolicyFinding(name=name, level=level, message=text)


def _make_review(entry: ReviewedObject) -> JsonObject:
    wanted = entry.live if entry.action == "delete" else entry.wanted
    value = object_or_empty(wanted if wanted is not None else entry.live)
    metadata = object_or_empty(value.get("metadata"))
    group, _, version = text_or_empty(value.get("apiVersion")).rpartition("/")
    return {
        "kind": {"group": group, "version": version, "kind": text_or_empty(value.get("kind"))},
        "name": text_or_empty(metadata.get("name")),
        "namespace": text_or_empty(metadata.get("namespace")),
        "operation": _OPERATIONS[entry.action],
        "object": wanted,
        "oldObject": entry.live,
        "dryRun": True,
    }


def _write_address(review: JsonObject) -> str:
    kind = object_or_empty(review.get("kind"))
    parts = (kind.get("group"), kind.get("kind"), review.get("namespace"), review.get("name"))
    return "/".join(text_or_empty(part) for part in parts if part)


def _list_values(secret: JsonObject) -> Iterator[str]:
    """Yield the values of a Secret as programs see them; also as they are stored if binary."""
    for text in object_or_empty(secret.get("stringData")).values():
        yield text_or_empty(text)
    for text in object_or_empty(secret.get("data")).values():
        stored = text_or_empty(text)
        try:
            yield base64.b64decode(stored).decode()
        except (binascii.Error, UnicodeDecodeError):
            yield stored
