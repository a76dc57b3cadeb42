"""Enrolment and access tokens of runners."""

from pydantic import BaseModel

from exclave.api.bare import BarePublicRoute
from exclave.api.credentials import DepsOf
from exclave.api.requests import LimitedRequest, read_model
from exclave.api.routes import PublicRoute, make_router
from exclave.control.dispatch import enrolment
from exclave.domain.identity import RunnerId
from exclave.wire.runner import (
    AskNonce,
    AskToken,
    Enrol,
    Enrolled,
    NonceReply,
    ServerKeys,
    TokenReply,
)

router = make_router("/v1", "identity", PublicRoute)


@router.post("/enrol")
async def enrol_runner(request: Enrol, deps: DepsOf) -> Enrolled:
    """Exchange a one-time token for an identity; the same key may repeat the request."""
    return await enrolment.enrol_runner(deps, request)


@router.post("/token/nonce")
async def give_nonce(request: AskNonce, deps: DepsOf) -> NonceReply:
    """Return a nonce to sign."""
    return await enrolment.issue_nonce(deps, RunnerId(request.runner_id))


described = make_router("/v1", "identity", PublicRoute)
"""What `TokenRoute` serves, for the OpenAPI document; never served itself."""


@described.post("/token")
async def give_token(request: AskToken, deps: DepsOf) -> TokenReply:
    """Issue an access token for a signed nonce; a reused generation locks the runner."""
    return await enrolment.issue_token(deps, request)


@router.get("/keys")
async def list_keys(deps: DepsOf) -> ServerKeys:
    """Return the chain of signing keys."""
    return await enrolment.list_server_keys(deps)


class TokenRoute(BarePublicRoute):
    """Access tokens, which every runner requests every few minutes."""

    async def answer(self, request: LimitedRequest, who: None) -> BaseModel | None:
        """Issue an access token."""
        del who
        return await enrolment.issue_token(self.deps, await read_model(request, AskToken))
