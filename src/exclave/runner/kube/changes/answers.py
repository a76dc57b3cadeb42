"""What an API server's answer to a dry run means for a plan: a table, first row wins."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Final

from exclave.runner.kube.api.errors import ApiStatus, Cause, is_about_object


class Verdict(StrEnum):
    """What a refused dry run means."""

    CONFLICT = "conflict"
    """Other managers own fields: the change takes them over."""
    REPLACE = "replace"
    """A field cannot be changed: the object has to be recreated."""
    NEW_NAMESPACE = "new_namespace"
    """The namespace does not exist yet, so that nothing could be checked."""
    NO_DRY_RUN = "no_dry_run"
    """An admission webhook cannot be asked without consequences."""
    REFUSED = "refused"
    """The object is wrong, or forbidden by a rule of the cluster."""
    FAILED = "failed"
    """The request failed for a reason that is not in the object."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: which answers it is about, and what they mean."""

    verdict: Verdict
    codes: frozenset[int]
    matches: Callable[[ApiStatus], bool]


_IMMUTABLE: Final = (
    "field is immutable",
    "may not change once set",
    "updates to statefulset spec",
    "is immutable after creation",
    "immutable field",
    "cannot be changed once set",
    "field is immutable when",
)
_NO_DRY_RUN: Final = "does not support dry run"


def _says(*words: str) -> Callable[[ApiStatus], bool]:
    return lambda status: any(word in status.message for word in words)


def list_immutable(status: ApiStatus) -> list[Cause]:
    """Return the causes of a refusal that are about fields which cannot be changed."""
    return [
        cause
        for cause in status.causes
        if any(word in cause.message.lower() for word in _IMMUTABLE)
    ]


TABLE: Final = (
    Row(
        Verdict.CONFLICT,
        frozenset({HTTPStatus.CONFLICT}),
        lambda status: any(cause.reason == "FieldManagerConflict" for cause in status.causes),
    ),
    Row(
        Verdict.REPLACE,
        frozenset({HTTPStatus.UNPROCESSABLE_ENTITY}),
        # An object that is wrong in other fields too would be refused as a new one as well.
        lambda status: bool(status.causes) and len(list_immutable(status)) == len(status.causes),
    ),
    Row(
        Verdict.NEW_NAMESPACE,
        frozenset({HTTPStatus.NOT_FOUND}),
        lambda status: status.message.startswith("namespaces ") and "not found" in status.message,
    ),
    Row(Verdict.NO_DRY_RUN, frozenset({HTTPStatus.BAD_REQUEST}), _says(_NO_DRY_RUN)),
    Row(Verdict.REFUSED, frozenset({HTTPStatus.FORBIDDEN}), _says("admission webhook", "violates")),
    Row(
        Verdict.REFUSED,
        frozenset({HTTPStatus.FORBIDDEN}),
        _says("ValidatingAdmissionPolicy", "being terminated", "exceeded quota"),
    ),
    Row(
        Verdict.REFUSED,
        frozenset(
            {
                HTTPStatus.BAD_REQUEST,
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                HTTPStatus.UNPROCESSABLE_ENTITY,
                HTTPStatus.INTERNAL_SERVER_ERROR,
            }
        ),
        is_about_object,
    ),
)


def classify_answer(status: ApiStatus) -> Verdict:
    """Return what a refused dry run means for the plan."""
    for row in TABLE:
        if status.code in row.codes and row.matches(status):
            return row.verdict
    return Verdict.FAILED
