"""Signs of life: every contact of a runner says when the next one is due."""

from datetime import timedelta
from typing import Any

from exclave.control.deps import Deps
from exclave.domain.identity import RunnerIdentity
from exclave.storage import runners
from exclave.storage.database import AnyRow, Tx

_RECONNECT_S = 3.0
"""A runner whose connection closed usually comes back within this time."""


def note_sign(tx: Tx, deps: Deps, runner: AnyRow, *, busy: bool, **values: Any) -> None:
    """Record a contact and when the next one is expected at the latest."""
    timings = deps.timings
    renew = deps.fleet.renew_s(timings, busy=busy)
    due = tx.now + timedelta(seconds=renew + timings.late_after_s - timings.renew_s)
    runners.update_runner(
        tx, runner.org_id, runner.id, {"seen_at": tx.now, "due_at": due, "cause": "", **values}
    )


def count_anew(runner: AnyRow, boot: int) -> dict[str, int]:
    """Start the request numbers over where this is the first sign of a new boot."""
    return {"poll_no": 0, "renew_no": 0} if boot > runner.boot else {}


async def note_disconnect(deps: Deps, who: RunnerIdentity, boot: int, poll_no: int) -> None:
    """Expect a runner back soon after its poll's connection closed before the answer."""

    def note(tx: Tx) -> None:
        row = runners.find_runner(tx, who.org, who.runner, lock=True)
        if row is None or (row.boot, row.poll_no) != (boot, poll_no):
            return
        due = tx.now + timedelta(seconds=_RECONNECT_S)
        if row.due_at is None or due < row.due_at:
            values = {"due_at": due, "cause": "the runner closed its connection or was killed"}
            runners.update_runner(tx, who.org, who.runner, values)

    await deps.db.write(note, key=who.queue)
