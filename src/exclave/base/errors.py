"""`Problem`, the base of all errors shown to users, and the kinds that each edge translates."""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar


class Kind(StrEnum):
    """What the caller can do about it; each edge maps a kind to its own status or exit code."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    GONE = "gone"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    FULL = "full"
    UNAVAILABLE = "unavailable"


class Problem(Exception):  # noqa: N818 - the house name for it; it is not always an error of ours
    """An expected failure: what happened (message), what to do (hint), and facts for machines.

    `facts` are public: they are shown to the caller. Nothing private may be put there.
    """

    kind: ClassVar[Kind] = Kind.INVALID
    code: ClassVar[str] = "invalid"
    hint: ClassVar[str] = ""

    def __init__(self, message: str, *, hint: str | None = None, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.advice = self.hint if hint is None else hint
        self.facts: Mapping[str, object] = facts


class InvalidInput(Problem):
    """The request itself is wrong; repeating it changes nothing."""

    code = "invalid_input"


class NotFound(Problem):
    """The resource does not exist or belongs to another tenant; the caller cannot tell which."""

    kind = Kind.NOT_FOUND
    code = "not_found"
    hint = "Check the id, and that your token belongs to the right org."


class Unauthenticated(Problem):
    """No credential, or one that is unknown, expired or revoked."""

    kind = Kind.UNAUTHENTICATED
    code = "unauthenticated"
    hint = "Log in with a valid token (`exclave auth login`, EXCLAVE_TOKEN); HTTP: Authorization."


class Forbidden(Problem):
    """The caller is authenticated and may see the resource, but lacks the right to do this."""

    kind = Kind.FORBIDDEN
    code = "forbidden"
    hint = "Ask an admin of your org for a role that allows this."


class Conflict(Problem):
    """The request is valid but conflicts with the current state."""

    kind = Kind.CONFLICT
    code = "conflict"


class TooLarge(Problem):
    """A limit was exceeded; nothing was stored."""

    kind = Kind.TOO_LARGE
    code = "too_large"


class Unavailable(Problem):
    """A dependency does not respond; the same request may succeed later."""

    kind = Kind.UNAVAILABLE
    code = "unavailable"
    hint = "Try again in a moment."
