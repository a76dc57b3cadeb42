"""Calls of a Stack to the Runner API, with the runner's own access token."""

from typing import Protocol

from pydantic import BaseModel

from exclave.client.exchange import Model, ask, authorise, build_post, read_reply
from exclave.client.transport import Link, build_tls, open_client
from exclave.wire.model import Request
from exclave.wire.stacks import Leaving, ProgramOffer, Resigned, StackReport, StackTerms

_WITHIN_S = 20.0


class StackApi(Protocol):
    """The calls of a Stack; they fail with the same errors as those of `RunnerApi`."""

    async def report(self, token: str, request: StackReport) -> StackTerms:
        """Send a report; return what the app asks of the customer now."""
        ...

    async def leave(self, token: str, request: Leaving) -> None:
        """Announce that the machine goes, and why."""
        ...

    async def ask_program(self, token: str) -> ProgramOffer:
        """Return the program that the runner should run."""
        ...

    async def resign(self, token: str) -> Resigned:
        """Close the runner's identity for good."""
        ...


class HttpStackApi:
    """`StackApi` over HTTP."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._client = open_client(link, build_tls(link), connections=2)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def report(self, token: str, request: StackReport) -> StackTerms:
        """Send a report."""
        return await self._post(StackTerms, "/v1/stack/report", request, token)

    async def leave(self, token: str, request: Leaving) -> None:
        """Announce that the machine goes."""
        posted = build_post(self._client, "/v1/stack/leaving", request, token)
        await ask(self._link, self._client, posted, _WITHIN_S)

    async def ask_program(self, token: str) -> ProgramOffer:
        """Return the program that the runner should run."""
        headers = authorise(token)
        request = self._client.build_request("GET", "/v1/stack/program", headers=headers)
        return read_reply(ProgramOffer, await ask(self._link, self._client, request, _WITHIN_S))

    async def resign(self, token: str) -> Resigned:
        """Close the runner's identity."""
        return await self._post(Resigned, "/v1/stack/resign", Request(), token)

    async def _post(self, reply: type[Model], path: str, body: BaseModel, token: str) -> Model:
        request = build_post(self._client, path, body, token)
        return read_reply(reply, await ask(self._link, self._client, request, _WITHIN_S))
