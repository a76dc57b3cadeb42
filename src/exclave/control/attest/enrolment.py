"""Enrol a runner by attestation: without a secret, and without a person when it is replaced."""

from dataclasses import dataclass
from typing import Final

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.control.attest import admission, challenges, pins
from exclave.control.attest.base import Attestor, Claim, CloudUnreachable, EvidenceRefused
from exclave.control.attest.problems import (
    AttestationRefused,
    AttestationUnavailable,
    AttestationUnconfirmed,
)
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.dispatch.polls import check_protocol
from exclave.control.runtime.rates import RateLimited
from exclave.domain.identity import OrgId
from exclave.domain.install_identities import (
    InstallIdentity,
    Proof,
    Verdict,
    decide_enrolment,
)
from exclave.domain.installs import AppInstall
from exclave.domain.stacks import Cloud
from exclave.storage import installs
from exclave.storage.engine.database import Tx
from exclave.wire.attest import AskChallenge, Challenge, EnrolAttested
from exclave.wire.runner import Enrolled

log = Log("attest")

_PER_INSTALL: Final = 10 / 60
_PER_ADDRESS: Final = 60 / 60
_NOTED: Final = 1 / 60
_WINDOW_S: Final = 60.0
"""Tries per second, counted over this many seconds."""


@dataclass(frozen=True, slots=True)
class _Expected:
    """The install that a machine claims to run, and whose machine it expects."""

    install: AppInstall
    identity: InstallIdentity
    has_code: bool


async def issue_challenge(deps: Deps, request: AskChallenge, address: str) -> Challenge:
    """Return a nonce for evidence."""
    _find_attestor(deps, Cloud(request.cloud))
    _limit_tries(deps, "challenge", request.install_id, address)
    return await challenges.issue_challenge(deps, request)


async def enrol_attested(deps: Deps, request: EnrolAttested, address: str) -> Enrolled:
    """Exchange evidence for an identity that is bound to the runner's key.

    The nonce is used up first, so every try needs a new one. The cloud is asked outside of any
    transaction. A machine with the key of the runner gets the same identity again; one with
    another key replaces it.
    """
    check_protocol(request.protocol)
    cloud = Cloud(request.evidence.cloud)
    attestor = _find_attestor(deps, cloud)
    _limit_tries(deps, "enrol", request.install_id, address)
    org = await deps.db.read(lambda tx: installs.find_org_of(tx, request.install_id))
    try:
        proof = await _prove(deps, org, request, attestor)
    except EvidenceRefused as refused:
        await _note_refusal(deps, org, request.install_id, refused)
        raise AttestationRefused from refused
    except CloudUnreachable as gone:
        log.warning("cloud_unreachable", cloud=cloud, why=str(gone)[:300])
        message = "the cloud that could confirm the evidence does not answer"
        raise AttestationUnavailable(message, retry_after_s=15) from gone
    return await _enrol(deps, org, request, proof)


async def _prove(
    deps: Deps, org: OrgId | None, request: EnrolAttested, attestor: Attestor
) -> Proof:
    """Return what the evidence of a request proves."""
    cloud = Cloud(request.evidence.cloud)
    if not await challenges.use_nonce(
        deps, request.nonce, request.install_id, cloud, request.public_key
    ):
        raise EvidenceRefused("nonce", "used, expired, or of another install, cloud or key")
    expected = await deps.db.read(lambda tx: _find_expected(tx, org, request))
    if expected is None or expected.identity.cloud is not cloud:
        raise EvidenceRefused("identity", f"the install is not on {cloud}")
    if not expected.identity.is_pinned and not expected.has_code:
        raise EvidenceRefused("code", "no account is known, and no valid code came with it")
    identity = expected.identity
    claim = Claim(
        install=request.install_id,
        public_key=request.public_key,
        nonce=request.nonce,
        runner_url=deps.runner_url,
        region=identity.region,
        account=identity.account,
        tenant=identity.tenant,
    )
    turns = deps.attestors.turns
    if turns.locked():
        raise CloudUnreachable("too many machines enrol at once")
    async with turns:
        return await attestor.verify(claim, request.evidence)


async def _enrol(deps: Deps, org: OrgId | None, request: EnrolAttested, proof: Proof) -> Enrolled:
    def enrol(tx: Tx) -> Enrolled | Problem:
        if org is not None:
            installs.lock_install(tx, org, request.install_id)
        expected = _find_expected(tx, org, request, hold=True)
        if org is None or expected is None:
            return AttestationRefused()
        identity, install = expected.identity, expected.install
        verdict = decide_enrolment(identity, proof, has_code=expected.has_code)
        if verdict is Verdict.CODE_NEEDED:
            return AttestationRefused()
        if verdict is not Verdict.ACCEPTED:
            pins.note_foreign(tx, deps, identity, proof, verdict)
            return AttestationRefused()
        code = None if identity.is_pinned else pins.find_code(tx, install, request.code)
        identity = admission.pin_first(tx, deps, install, identity, proof, code)
        if identity.waits:
            return AttestationUnconfirmed(f"account {identity.account} is not confirmed yet")
        return admission.admit_machine(tx, deps, install, identity, request, proof, code)

    return await deps.db.write(enrol, key=request.install_id)


def _find_expected(
    tx: Tx, org: OrgId | None, request: EnrolAttested, *, hold: bool = False
) -> _Expected | None:
    """Return the install of a request and whom it expects; None if it is none of an app."""
    install = None if org is None else installs.find_install(tx, org, request.install_id)
    if org is None or not isinstance(install, AppInstall):
        return None
    find = pins.hold_identity if hold else pins.find_identity
    code = pins.find_code(tx, install, request.code, lock=hold)
    return _Expected(install, find(tx, org, install), code is not None)


def _find_attestor(deps: Deps, cloud: Cloud) -> Attestor:
    attestor = deps.attestors.find(cloud)
    if attestor is None:
        raise AttestationUnavailable(f"this control plane accepts no evidence of {cloud}")
    return attestor


def _limit_tries(deps: Deps, what: str, install: str, address: str) -> None:
    """Refuse more tries than machines need; both kinds of request are counted apart."""
    now = deps.clock.monotonic()
    spend = deps.rates.spend
    spend("attest_address", f"{what} {address}", now, _PER_ADDRESS, burst_s=_WINDOW_S)
    spend("attest_install", f"{what} {install}", now, _PER_INSTALL, burst_s=_WINDOW_S)


async def _note_refusal(
    deps: Deps, org: OrgId | None, install: str, refused: EvidenceRefused
) -> None:
    """Log a refusal, and record it in the audit log: once a minute for each install and reason."""
    log.warning("attestation_refused", install=install, why=refused.reason, detail=refused.detail)
    if org is None:
        return
    try:
        name, now = f"{install} {refused.reason}", deps.clock.monotonic()
        deps.rates.spend("attest_audit", name, now, _NOTED, burst_s=_WINDOW_S)
    except RateLimited:
        return
    why = {"reason": refused.reason, "detail": refused.detail[:300]}
    await deps.db.write(
        lambda tx: record(tx, deps, org, pins.ATTESTATION, "attestation_refused", install, **why)
    )
