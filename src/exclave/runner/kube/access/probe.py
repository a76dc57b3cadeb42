"""Whether the clusters that a customer named can be reached, for reports and `runner doctor`."""

import asyncio
from dataclasses import dataclass
from typing import Final

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.client.retry import RetryPolicy
from exclave.runner.kube.access.clusters import ClusterConnector, NamedKubeconfig
from exclave.runner.kube.api.client import ClusterClient
from exclave.wire.kubernetes import KubeconfigCluster

_ONCE: Final = RetryPolicy(give_up_s=0.0)
_WITHIN_S: Final = 8.0
_AGAIN_AFTER_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class ProbedCluster:
    """What an attempt to reach a cluster gave: its version, or the problem."""

    version: str = ""
    problem: str = ""
    hint: str = ""

    @property
    def reachable(self) -> bool:
        """Whether the cluster accepted the credential."""
        return not self.problem


class ClusterProbe:
    """Asks each named cluster for its version, at most once a minute."""

    def __init__(self, connector: ClusterConnector, clock: Clock, randomness: Randomness) -> None:
        self._connector = connector
        self._clock = clock
        self._randomness = randomness
        self._asked_for: dict[str, NamedKubeconfig] = {}
        self._asked_at = 0.0
        self._known: dict[str, ProbedCluster] = {}

    async def read(self) -> dict[str, ProbedCluster]:
        """Return the clusters by name; those that were named just now are asked at once."""
        named = dict(await asyncio.to_thread(self._connector.kubeconfigs))
        now = self._clock.monotonic()
        if named != self._asked_for or (named and now - self._asked_at > _AGAIN_AFTER_S):
            probed = await asyncio.gather(*map(self.ask, named))
            self._known = dict(zip(named, probed, strict=True))
            self._asked_for, self._asked_at = named, now
        return self._known

    async def ask(self, name: str) -> ProbedCluster:
        """Return what a cluster answers now."""
        try:
            async with asyncio.timeout(_WITHIN_S):
                connection = await self._connector.connect(KubeconfigCluster(name=name))
                async with ClusterClient(
                    connection, self._clock, self._randomness, patience=_ONCE
                ) as client:
                    version = await client.read_version()
                    await client.discover()  # `version` answers anybody
        except Problem as problem:
            return ProbedCluster(problem=problem.message, hint=problem.advice)
        except TimeoutError:
            return ProbedCluster(problem=f"no answer within {_WITHIN_S:g} s")
        return ProbedCluster(version)
