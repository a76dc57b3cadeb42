"""Failures of a cluster's API as values, and which reason of a job each one is."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import ClassVar, Final

from exclave.base.errors import Kind, Problem
from exclave.base.json_values import (
    JsonObject,
    list_or_empty,
    object_or_empty,
    parse_object,
    text_or_empty,
)
from exclave.client.problems import Unreachable
from exclave.runner.kube.api.objects import ObjectsRefused
from exclave.runner.kube.api.yaml_reader import YamlRefused
from exclave.wire.jobs import Reason

_LONGEST_TEXT: Final = 2000
_LONGEST_WAIT_S: Final = 60.0
_TYPED_PATCH: Final = "failed to create typed patch object"
_BUSY: Final = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a refusal: its type, the field and the server's sentence."""

    reason: str
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class ApiStatus:
    """What an API server answered instead of an object."""

    code: int
    reason: str
    message: str
    causes: tuple[Cause, ...] = ()
    retry_after_s: float | None = None


class ApiRefused(Problem):
    """The API server refused a request; `status` says how."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "api_refused"

    def __init__(self, status: ApiStatus, request: str) -> None:
        super().__init__(f"{request}: {status.message}", hint=explain(status, request))
        self.status = status
        self.request = request


class ClusterUnreachable(Problem):
    """No API server answered: address, network, certificate, or it is down."""

    kind: ClassVar = Kind.UNAVAILABLE
    code: ClassVar = "cluster_unreachable"
    hint: ClassVar = (
        "Check the endpoint, that the runner's network reaches it, and its certificate authority."
    )


class AccessRefused(Problem):
    """The access to a cluster is not set up, or its issuer refuses a token."""

    kind: ClassVar = Kind.FORBIDDEN
    code: ClassVar = "cluster_access_refused"
    hint: ClassVar = "See docs/how-to/give-a-runner-a-cluster.md."


class KindUnknown(Problem):
    """The cluster does not know a kind."""

    code: ClassVar = "kind_unknown"
    hint: ClassVar = "Install the CustomResourceDefinition first, or correct `apiVersion`."

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"the cluster has no kind `{kind}` in `{api_version}`")


class ReplyTooLarge(Problem):
    """A reply is larger than the runner reads."""

    kind: ClassVar = Kind.TOO_LARGE
    code: ClassVar = "reply_too_large"
    hint: ClassVar = "Ask for less at once, or make the object smaller."


def read_status(code: int, body: bytes, retry_after: str) -> ApiStatus:
    """Return the status of an error reply, also one that does not come from an API server."""
    try:
        document = parse_object(body, "the reply")
    except ValueError:
        document = {}
    if document.get("kind") != "Status":
        text = body[:_LONGEST_TEXT].decode(errors="replace").strip()
        message = text or HTTPStatus(code).phrase if code in _KNOWN_CODES else text
        return ApiStatus(code, "", message, retry_after_s=_read_seconds(retry_after))
    details = object_or_empty(document.get("details"))
    causes = tuple(_read_cause(object_or_empty(cause)) for cause in _list_causes(details))
    asked = details.get("retryAfterSeconds")
    wait_s = float(asked) if isinstance(asked, int | float) and asked else None
    return ApiStatus(
        code,
        text_or_empty(document.get("reason")),
        text_or_empty(document.get("message"))[:_LONGEST_TEXT] or "refused without a message",
        causes,
        _read_seconds(retry_after) if retry_after else wait_s,
    )


def classify(problem: Problem) -> Reason:
    """Return the reason of a job that ends with a failed call to a cluster."""
    match problem:
        case ApiRefused():
            return classify_status(problem.status)
        case ClusterUnreachable():
            return Reason.CLUSTER_UNREACHABLE
        case AccessRefused():
            return Reason.ACCESS_DENIED
        case KindUnknown() | ReplyTooLarge() | YamlRefused() | ObjectsRefused():
            return Reason.OBJECT_REFUSED
        case Unreachable():
            return Reason.NETWORK
        case _:
            return Reason.RUNNER_ERROR


def classify_status(status: ApiStatus) -> Reason:
    """Return the reason that an API server's refusal is for a job."""
    match status.code:
        case HTTPStatus.UNAUTHORIZED:
            return Reason.ACCESS_DENIED
        case HTTPStatus.FORBIDDEN:
            return _classify_forbidden(status.message)
        case HTTPStatus.CONFLICT:
            return Reason.PLAN_STALE
        case code if code in _BUSY:
            return Reason.CLUSTER_UNREACHABLE
        case HTTPStatus.INTERNAL_SERVER_ERROR if not is_about_object(status):
            return Reason.CLUSTER_UNREACHABLE
        case _:
            return Reason.OBJECT_REFUSED


def is_about_object(status: ApiStatus) -> bool:
    """Return whether a refusal is about the object that was sent, not about the server.

    Server-side apply reports unknown fields and wrong types as an internal error.
    """
    if status.code == HTTPStatus.INTERNAL_SERVER_ERROR:
        return _TYPED_PATCH in status.message or "webhook" in status.message
    return status.code in {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }


def is_passing(status: ApiStatus) -> bool:
    """Return whether the same request may succeed later."""
    return status.code in _BUSY or status.reason in {"ServerTimeout", "Timeout"}


def explain(status: ApiStatus, request: str) -> str:
    """Return what a person can do about a refusal."""
    match classify_status(status):
        case Reason.ACCESS_DENIED if status.code == HTTPStatus.UNAUTHORIZED:
            return "The cluster does not accept the runner's credential: renew it in the Stack."
        case Reason.ACCESS_DENIED:
            return "Give the runner's role this right in the cluster (a Role and a RoleBinding)."
        case Reason.QUOTA:
            return "Raise the ResourceQuota of the namespace, or ask for less."
        case Reason.PLAN_STALE:
            return "Somebody changed the object meanwhile: plan again."
        case Reason.CLUSTER_UNREACHABLE:
            return "The API server cannot answer now: look at its health, then try again."
        case _ if status.code == HTTPStatus.NOT_FOUND:
            return f"Check that what `{request}` names exists."
        case _:
            return "Correct the object; the sentence is the API server's own."


def _classify_forbidden(message: str) -> Reason:
    if "exceeded quota" in message:
        return Reason.QUOTA
    denied_by_rule = "violates PodSecurity" in message or "admission webhook" in message
    by_policy = "ValidatingAdmissionPolicy" in message or "being terminated" in message
    return Reason.OBJECT_REFUSED if denied_by_rule or by_policy else Reason.ACCESS_DENIED


def _list_causes(details: JsonObject) -> list[JsonObject]:
    return [object_or_empty(cause) for cause in list_or_empty(details.get("causes"))[:100]]


def _read_cause(cause: JsonObject) -> Cause:
    return Cause(
        text_or_empty(cause.get("reason")),
        text_or_empty(cause.get("field")),
        text_or_empty(cause.get("message"))[:_LONGEST_TEXT],
    )


def _read_seconds(text: str) -> float | None:
    return min(float(text), _LONGEST_WAIT_S) if text.isdecimal() else None


_KNOWN_CODES: Final = frozenset(int(code) for code in HTTPStatus)
