"""Wait for a rollout: until all is ready, until something is doomed, or until time is up."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from exclave.base.clock import Clock
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import ApiRefused, ClusterUnreachable
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.rollouts.diagnosis import HINTS, LIMITS, Cause, Limit
from exclave.runner.kube.rollouts.inquiry import Inquiry, inquire
from exclave.runner.kube.rollouts.watching import Followed, Followers
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_EVERY_S: Final = 1.0
_MOST_ASKED: Final = 20
"""Unready objects that are asked for their reasons in one round."""


class Unready(NamedTuple):
    """An object that did not become ready, and why, as far as it is known."""

    id: ObjectId
    cause: Cause
    line: str
    log: Sequence[str] = ()


@dataclass(slots=True)
class _Suspicion:
    cause: Cause
    since: float
    scaled_at: str = ""


@dataclass(slots=True)
class RolloutWait:
    """Waits for objects. `say` is told every change that a person wants to follow."""

    client: ClusterClient
    clock: Clock
    say: Callable[[str], None]
    limits: Mapping[Cause, Limit] = field(default_factory=lambda: LIMITS)
    _suspicions: dict[ObjectId, _Suspicion] = field(default_factory=dict)
    _lines: dict[ObjectId, str] = field(default_factory=dict)

    async def wait(self, objects: Sequence[ObjectId], *, until: float) -> list[Unready]:
        """Return what is not ready in the end; nothing if the rollout succeeded."""
        if not objects:
            return []
        followers = Followers(self.client, objects, self._describe_progress)
        ready = asyncio.create_task(followers.follow_all())
        doomed = asyncio.create_task(self._find_doomed(followers))
        late = asyncio.create_task(self.clock.sleep(max(0.0, until - self.clock.monotonic())))
        tasks: set[asyncio.Task[object]] = {ready, doomed, late}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                _raise_first(ready)
                return []
            if doomed.done():
                return doomed.result()
            return [
                await explain_unready(self.client, entry)
                for entry in followers.list_unready()[:_MOST_ASKED]
            ]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _find_doomed(self, followers: Followers) -> list[Unready]:
        """Return the objects of which it is known that they will not become ready."""
        while True:
            await self.clock.sleep(_EVERY_S)
            doomed: list[Unready] = []
            for entry in followers.list_unready()[:_MOST_ASKED]:
                unready = await self._check_doomed(entry)
                if unready is not None:
                    doomed.append(unready)
            if doomed:
                return doomed

    async def _check_doomed(self, entry: Followed) -> Unready | None:
        try:
            inquiry = await inquire(self.client, entry)
        except (ApiRefused, ClusterUnreachable):
            return None  # who may not look at pods still gets the rollout, without its reasons
        if entry.readiness.ready:
            return None
        self._describe_cause(entry, inquiry)
        diagnosis, now = inquiry.diagnosis, self.clock.monotonic()
        before = self._suspicions.get(entry.id)
        is_news = before is None or before.cause is not diagnosis.cause
        if before is None or is_news or before.scaled_at != inquiry.scaled_at:
            before = _Suspicion(diagnosis.cause, now, inquiry.scaled_at)
            self._suspicions[entry.id] = before
        limit = self.limits.get(diagnosis.cause)
        if limit is None or diagnosis.restarts < limit.restarts:
            return None
        return _describe(entry, inquiry) if now - before.since >= limit.seconds else None

    def _describe_progress(self, entry: Followed) -> None:
        text = "ready" if entry.readiness.ready else entry.readiness.text
        self.say(f"{_name(entry.id)}: {text}")

    def _describe_cause(self, entry: Followed, inquiry: Inquiry) -> None:
        """Report a cause once, and again when it changes."""
        text = inquiry.diagnosis.text
        if inquiry.diagnosis.cause is Cause.WAITING or self._lines.get(entry.id) == text:
            return
        self._lines[entry.id] = text
        self.say(f"{_name(entry.id)}: {text}")


async def explain_unready(client: ClusterClient, entry: Followed) -> Unready:
    """Return why an object is not ready, as far as the cluster tells."""
    try:
        return _describe(entry, await inquire(client, entry))
    except (ApiRefused, ClusterUnreachable) as problem:
        return Unready(entry.id, Cause.WAITING, f"{_name(entry.id)}: {problem.message}")


def fail_rollout(unready: Sequence[Unready]) -> WorkFailed:
    """Return why a rollout failed, the worst first; a timeout only if no object tells why."""
    causes = list(Cause)
    ordered = sorted(unready, key=lambda entry: causes.index(entry.cause))
    is_known = any(entry.cause is not Cause.WAITING for entry in unready)
    reason = Reason.ROLLOUT_FAILED if is_known else Reason.TIMEOUT
    return WorkFailed(reason, "\n".join(entry.line for entry in ordered))


def _describe(entry: Followed, inquiry: Inquiry) -> Unready:
    diagnosis = inquiry.diagnosis
    last = f"; last line: {inquiry.log[-1]}" if inquiry.log else ""
    hint = f" ({HINTS[diagnosis.cause]})" if HINTS[diagnosis.cause] else ""
    text = diagnosis.text or "nothing is known about it"
    line = f"{_name(entry.id)}: {text}{last}{hint}"
    return Unready(entry.id, diagnosis.cause, line, inquiry.log)


def _name(object_id: ObjectId) -> str:
    where = f"{object_id.namespace}/" if object_id.namespace else ""
    return f"{object_id.kind} {where}{object_id.name}"


def _raise_first(task: "asyncio.Task[None]") -> None:
    """Raise the first problem of a group of tasks, as if there had been no group."""
    error = task.exception()
    if isinstance(error, BaseExceptionGroup):
        raise error.exceptions[0]
    if error is not None:
        raise error
