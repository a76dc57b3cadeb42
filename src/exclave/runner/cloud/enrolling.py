"""Enrol a machine by attestation, for as long as it takes; by a one-time code if that fails.

A machine that boots is early: its role may not work everywhere yet, its clock may be off, the
control plane may be away. Nobody watches it, so it never gives up, and says in its log what it
waits for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from exclave import __version__
from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.base.logs import Log
from exclave.client.attest import AttestApi
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy
from exclave.runner.cloud.attest import Witness
from exclave.runner.cloud.boot import Boot
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.control_plane.identity import (
    Identity,
    NotEnrolled,
    StrangeKeys,
    keep_enrolled,
    make_key,
    refuse_second,
)
from exclave.runner.data_folder import DataFolder
from exclave.runner.wakeups import wait_first
from exclave.wire.attest import AskChallenge, EnrolAttested, bind_evidence
from exclave.wire.envelope import public_text
from exclave.wire.jobs import JobKind
from exclave.wire.runner import PROTOCOL

_log = Log("attest")

RETRIES: Final = RetryPolicy(first_s=1.0, longest_s=60.0)
REFUSED: Final = RetryPolicy(first_s=20.0, longest_s=300.0)
"""After a refusal: the same evidence is hardly better in a second, but a person may change it."""
_UNAVAILABLE: Final = "attestation_unavailable"
_PATIENCE: Final = 3
"""So many times in a row, before the one-time code is used up instead."""

EnrolByCode = Callable[[str], Awaitable[Identity]]
"""Enrols with a one-time token, as machines without a cloud do."""


@dataclass(frozen=True, slots=True)
class CloudEnrolment:
    """What a machine needs to enrol by attestation."""

    boot: Boot
    witness: Witness
    api: AttestApi
    clock: Clock
    randomness: Randomness

    async def enrol(
        self,
        disk: DataFolder,
        *,
        name: str,
        capabilities: tuple[JobKind, ...],
        pinned: Mapping[str, str] | None,
        by_code: EnrolByCode,
        stopping: asyncio.Event,
    ) -> Identity:
        """Return the identity that the control plane gives this machine, which is stored."""
        refuse_second(disk)
        failures = unavailable = 0
        while not stopping.is_set():
            try:
                return await self._try_once(disk, name, capabilities, pinned)
            except (StrangeKeys, NotEnrolled):
                raise
            except Problem as problem:
                unavailable = unavailable + 1 if _is_unavailable(problem) else 0
                if unavailable >= _PATIENCE:
                    identity = await self._fall_back(by_code)
                    if identity is not None:
                        return identity
                await self._pause(problem, failures, stopping)
                failures += 1
        raise NotEnrolled("stopped before it was enrolled")

    async def _try_once(
        self,
        disk: DataFolder,
        name: str,
        capabilities: tuple[JobKind, ...],
        pinned: Mapping[str, str] | None,
    ) -> Identity:
        boot = self.boot
        key = public_text(make_key(disk.path, self.randomness))
        asked = AskChallenge(install_id=boot.install, cloud=boot.cloud, public_key=key)
        challenge = await self.api.ask_challenge(asked)
        bind = bind_evidence(challenge.nonce, boot.install, key)
        request = EnrolAttested(
            install_id=boot.install,
            nonce=challenge.nonce,
            public_key=key,
            name=name,
            version=__version__,
            protocol=PROTOCOL,
            capabilities=list(capabilities),
            evidence=await self.witness.make_evidence(bind),
            code=boot.code,
        )
        identity = keep_enrolled(disk, await self.api.enrol_attested(request), pinned)
        _log.info("enrolled_by_attestation", cloud=boot.cloud, runner=identity.runner_id)
        return identity

    async def _fall_back(self, by_code: EnrolByCode) -> Identity | None:
        """Enrol by the one-time code, as machines without a cloud do; None if that fails."""
        if self.boot.code is None:
            return None
        _log.warning("code_instead_of_attestation")
        try:
            return await by_code(self.boot.code)
        except StrangeKeys:
            raise
        except Problem as failure:
            _log.warning("code_refused", code=failure.code, why=failure.message)
            return None

    async def _pause(self, problem: Problem, failures: int, stopping: asyncio.Event) -> None:
        refused = isinstance(problem, RemoteProblem) and problem.code == "attestation_refused"
        policy = REFUSED if refused else RETRIES
        pause_s = policy.choose_delay(self.randomness, failures, problem)
        _log.warning(
            "attestation_failed",
            where="cloud" if isinstance(problem, CloudRefused) else "control plane",
            code=problem.code,
            why=problem.message,
            hint=problem.advice,
            again_in_s=round(pause_s, 1),
        )
        await wait_first(self.clock, pause_s, stopping.wait())


def _is_unavailable(problem: Problem) -> bool:
    """Return whether the control plane cannot verify evidence of this cloud."""
    return isinstance(problem, RemoteProblem) and problem.code == _UNAVAILABLE
