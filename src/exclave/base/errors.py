"""The one error type that people are meant to see, and the kinds that edges translate."""

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
    """The thing does not exist, or it belongs to somebody else: the caller cannot tell which."""

    kind = Kind.NOT_FOUND
    code = "not_found"
    hint = "Check the id, and that your token belongs to the right org."


class Unauthenticated(Problem):
    """No credential, or one that is unknown, expired or revoked."""

    kind = Kind.UNAUTHENTICATED
    code = "unauthenticated"
    hint = "Log in with a valid token (`exclave auth login`, EXCLAVE_TOKEN); HTTP: Authorization."


class Forbidden(Problem):
    """The caller is known, may see the thing, and may not do this to it."""

    kind = Kind.FORBIDDEN
    code = "forbidden"
    hint = "Ask an admin of your org for a role that allows this."


class Conflict(Problem):
    """The request is fine but does not fit the present state."""

    kind = Kind.CONFLICT
    code = "conflict"


class TooLarge(Problem):
    """A stated limit was passed; nothing was stored."""

    kind = Kind.TOO_LARGE
    code = "too_large"


class Unavailable(Problem):
    """Something we depend on does not answer; the same request may succeed later."""

    kind = Kind.UNAVAILABLE
    code = "unavailable"
    hint = "Try again in a moment."
