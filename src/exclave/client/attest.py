"""Calls of a machine that has no identity yet: enrolment by attestation."""

from typing import Protocol

from pydantic import BaseModel

from exclave.client.exchange import Model, ask, build_post, read_reply
from exclave.client.transport import Link, build_tls, open_client
from exclave.wire.attest import AskChallenge, Challenge, EnrolAttested
from exclave.wire.runner import Enrolled

_WITHIN_S = 45.0
"""The control plane asks the cloud meanwhile."""


class AttestApi(Protocol):
    """The calls of attestation; they fail with the same errors as those of `RunnerApi`."""

    async def ask_challenge(self, request: AskChallenge) -> Challenge:
        """Request a nonce for evidence."""
        ...

    async def enrol_attested(self, request: EnrolAttested) -> Enrolled:
        """Exchange evidence for an identity."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class HttpAttestApi:
    """`AttestApi` over HTTP."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._client = open_client(link, build_tls(link), connections=2)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def ask_challenge(self, request: AskChallenge) -> Challenge:
        """Request a nonce for evidence."""
        return await self._post(Challenge, "/v1/attest/challenge", request)

    async def enrol_attested(self, request: EnrolAttested) -> Enrolled:
        """Exchange evidence for an identity."""
        return await self._post(Enrolled, "/v1/attest/enrol", request)

    async def _post(self, reply: type[Model], path: str, body: BaseModel) -> Model:
        request = build_post(self._client, path, body, None)
        return read_reply(reply, await ask(self._link, self._client, request, _WITHIN_S))
