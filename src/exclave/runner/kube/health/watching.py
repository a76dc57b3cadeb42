"""Watch a part: healthy if all checks pass to the end, degraded as soon as one does not recover."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from exclave.base.clock import Clock
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.health.probes import RunInPod, run_probe
from exclave.runner.kube.health.workloads import (
    RESTARTS,
    Fault,
    find_faults,
    find_ready_pod,
)
from exclave.runner.kube.rollouts.ready import needs_wait
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import HealthProbe, HealthRules

_LONGEST_PAUSE_S: Final = 5.0
_LEAST_PAUSE_S: Final = 1.0
_LOOKS: Final = 10
"""How often a short window is looked at."""
_IN_A_ROW: Final = 3
"""Looks that a check may fail before it counts; restarts count at once."""
_MOST_NAMED: Final = 5


class Verdict(NamedTuple):
    """Whether a part is healthy, and why not."""

    state: Literal["healthy", "degraded"]
    reason: str = ""


@dataclass(slots=True)
class HealthWatch:
    """Watches the workloads of a part and runs its probes."""

    client: ClusterClient
    clock: Clock
    rules: HealthRules
    objects: Sequence[ObjectId]
    run_in_pod: RunInPod
    say: Callable[[str], None]
    _rows: dict[str, int] = field(default_factory=dict)
    """How often in a row each check has failed."""
    _passed: set[str] = field(default_factory=set)
    _said: set[str] = field(default_factory=set)

    async def watch(self) -> Verdict:
        """Watch for the whole window from now on."""
        return await self._watch(await self.client.read_time(), self.rules.window_s)

    async def check_past_window(self) -> Verdict:
        """Return the health over the window that just ended; failing checks are repeated first."""
        window = timedelta(seconds=self.rules.window_s)
        return await self._watch(await self.client.read_time() - window, 0.0)

    async def _watch(self, since: datetime, window_s: float) -> Verdict:
        end = self.clock.monotonic() + window_s
        pause_s = min(_LONGEST_PAUSE_S, max(_LEAST_PAUSE_S, self.rules.window_s / _LOOKS))
        while True:
            faults = self._choose(await self._find_faults(since))
            is_over = self.clock.monotonic() >= end
            final = [fault for fault in faults if self._is_final(fault.check, is_over=is_over)]
            if final:
                return Verdict("degraded", _join(final))
            if is_over and not faults:
                return Verdict("healthy")
            await self.clock.sleep(pause_s)

    async def _find_faults(self, since: datetime) -> list[Fault]:
        faults = await find_faults(self.client, self.objects, since)
        probes = self.rules.probes
        pod = None
        if any(probe.type == "exec" for probe in probes):
            pod = await find_ready_pod(self.client, self.objects)
        texts = await asyncio.gather(*(run_probe(probe, pod, self.run_in_pod) for probe in probes))
        faults += [
            Fault(probe.name, f"probe {probe.name}: {text}")
            for probe, text in zip(probes, texts, strict=True)
            if text
        ]
        self._count({fault.check for fault in faults}, probes)
        return faults

    def _count(self, failing: set[str], probes: Sequence[HealthProbe]) -> None:
        for name in {probe.name for probe in probes} - failing:
            self._passed.add(name)
        self._rows = {name: self._rows.get(name, 0) + 1 for name in failing}

    def _choose(self, faults: Sequence[Fault]) -> list[Fault]:
        """Return the faults that decide; the first sight of each is written to the log."""
        for fault in faults:
            if fault.text not in self._said:
                self._said.add(fault.text)
                self.say(fault.text)
        required = self.rules.required
        return [fault for fault in faults if not required or fault.check in required]

    def _is_final(self, check: str, *, is_over: bool) -> bool:
        """Return whether a failing check will not be waited for any longer.

        A probe may take the whole window to pass for the first time.
        """
        if check == RESTARTS:
            return True
        starts_late = check in {probe.name for probe in self.rules.probes} - self._passed
        return self._rows[check] >= _IN_A_ROW and (is_over or not starts_late)


def list_watched(objects: Sequence[WantedObject]) -> list[ObjectId]:
    """Return the objects of a plan whose health can be told; Jobs have ended and may be gone."""
    return [wanted.id for wanted in objects if wanted.id.kind != "Job" and needs_wait(wanted.value)]


async def watch_rollout(watch: HealthWatch, say: Callable[[str], None]) -> WorkFailed | None:
    """Watch what was just rolled out; return the failure of a deploy that is not healthy."""
    say(f"watching for {watch.rules.window_s:g} s whether it stays healthy")
    verdict = await watch.watch()
    if verdict.state == "healthy":
        return None
    return WorkFailed(Reason.ROLLOUT_FAILED, f"it does not stay healthy: {verdict.reason}")


def _join(faults: Sequence[Fault]) -> str:
    texts = list(dict.fromkeys(fault.text for fault in faults))
    left = len(texts) - _MOST_NAMED
    return "\n".join(texts[:_MOST_NAMED]) + (f"\nand {left} more" if left > 0 else "")
