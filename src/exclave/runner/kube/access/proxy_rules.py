"""Which requests of a job's commands pass to the cluster, and which of them change something."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, unquote

Headers = list[tuple[bytes, bytes]]

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REVIEWS: Final = frozenset(
    {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
)
_CONNECTING: Final = frozenset({"exec", "attach", "portforward", "proxy"})
"""Parts of objects that open a connection into the cluster, also by GET."""
_DRY_PARTS: Final = frozenset({"", "status", "scale"})
"""Parts whose dry run is known to change nothing. A dry run of `token` issues a real token."""
_NAMESPACE_PARTS: Final = frozenset({"status", "finalize"})
_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_OURS: Final = frozenset({b"authorization", b"host", b"content-length", b"expect"})
_OURS_BEGIN: Final = (b"impersonate-", b"x-remote-")


class Mode(StrEnum):
    """What the commands of a job may do to the cluster."""

    READ = "read"
    """A plan: whatever would change something is refused, a server-side dry run is not."""
    WRITE = "write"
    CLOSED = "closed"
    """The job has ended."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a request passes; `changes` says that it has to be in the journal."""

    changes: bool
    status: HTTPStatus = HTTPStatus.OK
    message: str = ""

    @property
    def passes(self) -> bool:
        """Whether the request is sent to the cluster."""
        return self.status is HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about."""

    path: str
    resource: str
    part: str
    is_dry_run: bool


def decide(mode: Mode, method: str, target: str) -> Verdict:
    """Return what becomes of a request."""
    if mode is Mode.CLOSED:
        message = "the job of this proxy has ended"
        return Verdict(changes=False, status=HTTPStatus.UNAUTHORIZED, message=message)
    try:
        asked = read_target(target)
    except ValueError as error:
        return Verdict(changes=False, status=HTTPStatus.BAD_REQUEST, message=str(error))
    changes = is_change(method, asked)
    if changes and mode is Mode.READ:
        message = f"a plan changes nothing: {method} {asked.path} was refused"
        return Verdict(changes=True, status=HTTPStatus.FORBIDDEN, message=message)
    return Verdict(changes)


def is_change(method: str, asked: Target) -> bool:
    """Return whether a request may change the cluster.

    The options of a DELETE are read from its body, so `dryRun` in its query proves nothing.
    """
    if asked.part in _CONNECTING:
        return True
    if method in _SAFE:
        return False
    if method == "POST" and asked.resource in _REVIEWS:
        return False
    return method == "DELETE" or not asked.is_dry_run or asked.part not in _DRY_PARTS


def read_target(target: str) -> Target:
    """Return what the target of a request names; `ValueError` if it may be read in two ways."""
    raw, _, query = target.partition("?")
    path = unquote(raw)
    segments = path.strip("/").split("/")
    if "%" in path or any(segment in {"", ".", ".."} for segment in segments[:-1]):
        message = "the path of the request has to be plain"
        raise ValueError(message)
    skipped = {"api": 2, "apis": 3}.get(segments[0])
    rest = segments[skipped:] if skipped is not None else []
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in _NAMESPACE_PARTS:  # noqa: PLR2004
        rest = rest[2:]
    resource, _, part = (*rest, "", "", "")[:3]
    is_dry_run = parse_qs(query, keep_blank_values=True).get("dryRun") == ["All"]
    return Target(path, resource, part, is_dry_run)


def clean_request(headers: Iterable[tuple[bytes, bytes]], *, upgrade: bool) -> Headers:
    """Return the headers that pass to the cluster: no credential, nobody else's name."""
    kept = [
        (name, value)
        for name, value in headers
        if name not in _HOP | _OURS and not name.startswith(_OURS_BEGIN)
    ]
    if upgrade:
        kept += [(b"connection", b"Upgrade")]
        kept += [(name, value) for name, value in headers if name == b"upgrade"]
    return kept


def clean_reply(headers: Iterable[tuple[bytes, bytes]], *, upgrade: bool = False) -> Headers:
    """Return the headers that pass back to the command."""
    dropped = _HOP - {b"connection", b"upgrade"} if upgrade else _HOP
    return [(name, value) for name, value in headers if name.lower() not in dropped]
