"""Trust in envelopes: the pinned keys and their chain, and the checks of an envelope."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.runner.audit import Audit
from exclave.runner.control_plane.identity import Identity
from exclave.runner.data_folder import DataFolder, DataFolderBroken
from exclave.wire.envelope import (
    EnvelopeRefused,
    extend_trust,
    open_envelope,
    read_detached_kid,
    read_kid,
    verify_detached,
)
from exclave.wire.jobs import JobKind, Reason
from exclave.wire.runner import Dispatch, Offer, ServerKeys

MAX_LIFE = timedelta(hours=1)
SKEW = timedelta(seconds=60)

FetchKeys = Callable[[], Awaitable[ServerKeys]]


class KindUnsupported(EnvelopeRefused):
    """The envelope is valid, but this runner does not run jobs of this kind."""

    code: ClassVar = "kind_unsupported"


@dataclass(frozen=True, slots=True)
class Refused:
    """An offer that must not run, and what to report about it."""

    execution_id: str
    epoch: int
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The accepted and refused offers of one reply, without those that could not be checked."""

    accepted: list[Dispatch]
    refused: list[Refused]


class Trust:
    """Verifies offers. The highest sequence number is on disk before a job with it starts."""

    def __init__(
        self,
        disk: DataFolder,
        identity: Identity,
        audit: Audit,
        *,
        clock: Clock,
        capabilities: Sequence[JobKind],
    ) -> None:
        self._disk = disk
        self._me = identity
        self._audit = audit
        self._clock = clock
        self._capabilities = tuple(capabilities)
        self._keys_file = disk.path / "trusted_keys.json"
        self._sequence_file = disk.path / "sequence"
        self._keys = self._load_keys()
        self._sequence = self._load_sequence()

    async def verify(self, offers: Sequence[Offer], fetch_keys: FetchKeys) -> Judged:
        """Verify all offers of one reply; for an unknown key, fetch the chain of keys first."""
        if any(_claims_unknown_key(offer, self._keys) for offer in offers):
            await self._learn_keys(fetch_keys)
        opened: list[Dispatch] = []
        refused: list[Refused] = []
        for offer in offers:
            try:
                opened.append(self._check(offer))
            except EnvelopeRefused as problem:
                refused.append(_refuse(offer.execution_id, offer.epoch, problem))
        accepted = self._admit_in_order(opened, refused)
        for refusal in refused:
            self._audit.write(
                "envelope_refused",
                execution_id=refusal.execution_id,
                reason=str(refusal.reason),
                message=refusal.message,
            )
        return Judged(accepted, refused)

    async def verify_detached(
        self, kind: str, payload: bytes, signed: str, fetch_keys: FetchKeys
    ) -> None:
        """Raise unless the control plane has signed a payload that is no envelope."""
        try:
            if read_detached_kid(signed, kind) not in self._keys:
                await self._learn_keys(fetch_keys)
            verify_detached(signed, kind, payload, self._keys)
        except (ValueError, RecursionError) as error:
            raise EnvelopeRefused("not a signature") from error

    def _check(self, offer: Offer) -> Dispatch:
        dispatch = _open(offer.envelope, self._keys)
        check_ownership(dispatch, self._me)
        if (dispatch.execution_id, dispatch.epoch) != (offer.execution_id, offer.epoch):
            raise EnvelopeRefused("the envelope is for another execution than the offer")
        check_times(dispatch, self._clock.now())
        return dispatch

    def _admit_in_order(self, opened: list[Dispatch], refused: list[Refused]) -> list[Dispatch]:
        accepted: list[Dispatch] = []
        high = self._sequence
        for dispatch in sorted(opened, key=lambda candidate: candidate.sequence):
            problem = self._find_fault(dispatch, high)
            high = max(high, dispatch.sequence)
            if problem is None:
                accepted.append(dispatch)
            else:
                refused.append(_refuse(dispatch.execution_id, dispatch.epoch, problem))
        if high > self._sequence:
            self._disk.write(self._sequence_file, str(high).encode())
            self._sequence = high
        return accepted

    def _find_fault(self, dispatch: Dispatch, high: int) -> EnvelopeRefused | None:
        if dispatch.sequence <= high:
            return EnvelopeRefused(f"replayed: sequence {dispatch.sequence} is not above {high}")
        if dispatch.spec.kind not in self._capabilities:
            return KindUnsupported(f"this runner does no `{dispatch.spec.kind}` jobs")
        return None

    async def _learn_keys(self, fetch_keys: FetchKeys) -> None:
        offered = (await fetch_keys()).keys
        trusted = extend_trust(self._keys, offered)
        new = [kid for kid in trusted if kid not in self._keys]
        if not new:
            return
        self._disk.write(self._keys_file, json.dumps(trusted).encode())
        self._keys = trusted
        for kid in new:
            self._audit.write("key_trusted", kid=kid, public_key=trusted[kid])

    def _load_keys(self) -> dict[str, str]:
        if not self._keys_file.exists():
            return dict(self._me.keys)
        try:
            stored = json.loads(self._keys_file.read_bytes())
        except ValueError as error:
            raise DataFolderBroken(f"`{self._keys_file}` is not readable") from error
        return {**{str(kid): str(key) for kid, key in stored.items()}, **self._me.keys}

    def _load_sequence(self) -> int:
        if not self._sequence_file.exists():
            return 0
        try:
            return int(self._sequence_file.read_text())
        except ValueError as error:
            raise DataFolderBroken(f"`{self._sequence_file}` does not hold a number") from error


def check_ownership(dispatch: Dispatch, me: Identity) -> None:
    """Raise if the envelope was signed for another runner, queue or org."""
    for name, theirs, mine in (
        ("runner", dispatch.runner_id, me.runner_id),
        ("org", dispatch.org_id, me.org_id),
        ("queue", dispatch.queue_id, me.queue_id),
    ):
        if theirs != mine:
            raise EnvelopeRefused(f"signed for another {name}: `{theirs}`")


def check_times(dispatch: Dispatch, now: datetime) -> None:
    """Raise if the envelope has expired, is not valid yet, or is valid for too long."""
    issued, expires = dispatch.issued_at, dispatch.expires_at
    if issued.tzinfo is None or expires.tzinfo is None:
        raise EnvelopeRefused("the times have no zone")
    if expires - issued > MAX_LIFE:
        raise EnvelopeRefused("valid for longer than an hour")
    if is_expired(dispatch, now):
        raise EnvelopeRefused(f"expired at {expires.isoformat()}; this machine's clock says {now}")
    if issued - now > SKEW:
        raise EnvelopeRefused(
            f"issued in the future, at {issued.isoformat()}; this machine's clock says {now}"
        )


def is_expired(dispatch: Dispatch, now: datetime) -> bool:
    """Return whether the envelope has expired, so that its job must not start."""
    return now - dispatch.expires_at > SKEW


def _open(envelope: str, trusted: Mapping[str, str]) -> Dispatch:
    try:
        return open_envelope(envelope, trusted)
    except (ValueError, RecursionError) as error:
        raise EnvelopeRefused("not a signed envelope") from error


def _claims_unknown_key(offer: Offer, trusted: Mapping[str, str]) -> bool:
    try:
        return read_kid(offer.envelope) not in trusted
    except (Problem, ValueError, RecursionError):
        return False


def _refuse(execution_id: str, epoch: int, problem: EnvelopeRefused) -> Refused:
    unsupported = isinstance(problem, KindUnsupported)
    reason = Reason.KIND_UNSUPPORTED if unsupported else Reason.ENVELOPE_REFUSED
    return Refused(execution_id, epoch, reason, problem.message)
