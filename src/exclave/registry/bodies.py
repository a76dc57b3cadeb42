"""Request bodies: small ones are read as a whole, large ones are streamed."""

from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect, Request

from exclave.domain.registry import ContentTooLarge

_LONGEST_NUMBER = 18


class Body:
    """A large body that is being received; it ends early if the client hangs up."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.cut = False

    @property
    def announced(self) -> int | None:
        """The size in bytes, if the client announced it."""
        header = self._request.headers.get("content-length", "")
        return int(header) if header.isdecimal() and len(header) <= _LONGEST_NUMBER else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body in chunks."""
        try:
            async for chunk in self._request.stream():
                if chunk:
                    yield chunk
        except ClientDisconnect:
            self.cut = True


async def read_small(request: Request, limit: int) -> bytes:
    """Return a body; raise if it is larger than the limit."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and (len(announced) > len(str(limit)) or int(announced) > limit):
        raise ContentTooLarge(f"the body has more than {limit} bytes")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise ContentTooLarge(f"the body has more than {limit} bytes")
    return bytes(body)
