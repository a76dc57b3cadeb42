"""Enrolment by attestation: for everybody, and bounded."""

from fastapi import Request

from exclave.api.credentials import DepsOf
from exclave.api.routes import PublicRoute, make_router
from exclave.control.attest import enrolment
from exclave.wire.attest import AskChallenge, Challenge, EnrolAttested
from exclave.wire.runner import Enrolled

router = make_router("/v1/attest", "identity", PublicRoute)


@router.post("/challenge")
async def issue_challenge(body: AskChallenge, request: Request, deps: DepsOf) -> Challenge:
    """Return a nonce that evidence has to contain; it is good for one try within a minute."""
    return await enrolment.issue_challenge(deps, body, _find_address(request))


@router.post("/enrol")
async def enrol_attested(body: EnrolAttested, request: Request, deps: DepsOf) -> Enrolled:
    """Exchange evidence of a cloud for an identity; a machine that was replaced loses its own."""
    return await enrolment.enrol_attested(deps, body, _find_address(request))


def _find_address(request: Request) -> str:
    """Return where a request comes from; behind a proxy that is the proxy."""
    return "" if request.client is None else request.client.host
