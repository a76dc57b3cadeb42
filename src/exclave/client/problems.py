"""Failures of a client: refused by the server, unreachable, or an unexpected reply."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.base.errors import Kind, Problem

TOO_LARGE = 413
_KINDS: dict[int, Kind] = {
    400: Kind.INVALID,
    401: Kind.UNAUTHENTICATED,
    403: Kind.FORBIDDEN,
    404: Kind.NOT_FOUND,
    409: Kind.CONFLICT,
    410: Kind.GONE,
    TOO_LARGE: Kind.TOO_LARGE,
    422: Kind.INVALID,
    429: Kind.TOO_MANY,
    507: Kind.FULL,
}


class RemoteProblem(Problem):
    """The server replied with a problem: its status, code, detail, hint and facts."""

    kind: ClassVar = Kind.UNAVAILABLE
    code: ClassVar = "remote_problem"

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        hint: str = "",
        facts: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(detail, hint=hint)
        self.status = status
        self.detail = detail
        self.facts = dict(facts or {})
        # Kind and code belong to a class everywhere else; here each answer brings its own.
        self.__dict__.update(kind=_KINDS.get(status, Kind.UNAVAILABLE), code=code)


class Unreachable(Problem):
    """There was no reply: wrong address, broken network, or the server is down."""

    kind: ClassVar = Kind.UNAVAILABLE
    code: ClassVar = "unreachable"
    hint: ClassVar = "Check the address, the network and that the server is running."


class UnexpectedReply(Problem):
    """The reply is not one of this API: another service, a proxy, or a newer server."""

    kind: ClassVar = Kind.UNAVAILABLE
    code: ClassVar = "unexpected_reply"
    hint: ClassVar = "Check that the address is that of an Exclave server, and its version."


class ProxyTooLarge(RemoteProblem):
    """A proxy refuses bodies of this size, so a retry is pointless."""

    code: ClassVar = "proxy_too_large"
    hint: ClassVar = (
        "A proxy in front of the control plane limits the size of bodies: raise its limit (nginx:"
        " `client_max_body_size`), as docs/how-to/run-a-control-plane.md shows."
    )

    def __init__(self, address: str, size: int) -> None:
        message = f"{address}: a proxy on the way refuses a body of {size} bytes"
        super().__init__(TOO_LARGE, type(self).code, message, hint=type(self).hint)
