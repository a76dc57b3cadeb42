"""Why no runner takes a job that nothing else holds up: none there, closed, disabled, lost."""

from collections.abc import Sequence

from exclave.control.deps import Deps
from exclave.domain.identity import OrgId, QueueId, QueueKind
from exclave.domain.presence import Presence, PresenceState, tell_presence
from exclave.storage import installs, queues, runners
from exclave.storage.database import AnyRow, Tx
from exclave.wire.jobs import Blocker

_MOST = 100


def find_missing_runner(
    tx: Tx, deps: Deps, org: OrgId, queue: QueueId, kind: str
) -> Blocker | None:
    """Tell why no runner of a queue can take a job of that kind; None if one can."""
    rows = runners.list_runners(tx, org, "", _MOST, queue)
    active = [row for row in rows if row.state == runners.ACTIVE]
    there = [(row, _tell_presence(tx, deps, row)) for row in active]
    able = [(row, presence) for row, presence in there if kind in row.capabilities]
    if any(presence.state is PresenceState.UP for _, presence in able):
        return None
    place = _Place(tx, org, queue)
    if not active:
        return place.tell(_tell_closed(rows), place.enrol)
    if not able:
        return place.tell(f"no runner does `{kind}` jobs", "Update the runner's program.")
    row, presence = min(able, key=lambda each: list(PresenceState).index(each[1].state))
    if presence.state is PresenceState.DISABLED:
        return place.tell(
            f"the customer has disabled runner `{row.name}`",
            "It goes on when the customer enables it: exclave stack enable",
        )
    return place.tell(
        f"runner `{row.name}` is {presence.state}: {presence.cause}",
        f"On its machine, `exclave runner doctor` tells what is wrong. {place.enrol}",
    )


class _Place:
    """A queue in the words of people."""

    def __init__(self, tx: Tx, org: OrgId, queue: QueueId) -> None:
        found = queues.find_queue(tx, org, queue)
        if found is not None and found.kind == QueueKind.BUILD:
            self.enrol = "Start a build runner: exclave runners enrol --build"
            return
        install = installs.find_install(tx, org, queue)
        name = queue if install is None else install.name
        has_app = install is not None and install.config_id is not None
        self.enrol = (
            f"Let the customer run a Stack: exclave installs stack {name}"
            if has_app
            else f"Start a runner: exclave runners enrol --install {name}"
        )

    def tell(self, message: str, hint: str) -> Blocker:
        """Say it."""
        return Blocker(lane=None, job_id=None, workflow_id=None, message=message, hint=hint)


def _tell_presence(tx: Tx, deps: Deps, row: AnyRow) -> Presence:
    return tell_presence(
        row.seen_at, row.due_at, row.cause, tx.now, deps.timings,
        disabled=bool(row.stats.get("disabled")),
    )  # fmt: skip


def _tell_closed(rows: Sequence[AnyRow]) -> str:
    if not rows:
        return "no runner was ever enrolled"
    last = rows[-1]
    return f"runner `{last.name}` is {last.state}: {last.state_reason}"
