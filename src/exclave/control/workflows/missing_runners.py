"""Why no runner takes a job that nothing else holds up: none there, closed, disabled, lost."""

from collections.abc import Sequence

from exclave.control.deps import Deps
from exclave.control.dispatch.presence import judge_runner
from exclave.domain.identity import OrgId, QueueId, QueueKind
from exclave.domain.presence import PresenceState
from exclave.storage import installs, queues, runners
from exclave.storage.engine.database import AnyRow, Tx
from exclave.wire.jobs import Blocker

_MOST = 100


def find_missing_runner(
    tx: Tx, deps: Deps, org: OrgId, queue: QueueId, kind: str
) -> Blocker | None:
    """Tell why no runner of a queue can take a job of that kind; None if one can."""
    rows = runners.list_runners(tx, org, "", _MOST, queue)
    active = [row for row in rows if row.state == runners.ACTIVE]
    there = [(row, judge_runner(deps, row, tx.now)) for row in active]
    able = [(row, presence) for row, presence in there if kind in row.capabilities]
    if any(presence.state is PresenceState.UP for _, presence in able):
        return None
    enrol = _advise_enrolment(tx, org, queue)
    if not active:
        return _tell(_tell_closed(rows), enrol)
    if not able:
        return _tell(f"no runner does `{kind}` jobs", "Update the runner's program.")
    row, presence = min(able, key=lambda each: list(PresenceState).index(each[1].state))
    if presence.state is PresenceState.DISABLED:
        return _tell(
            f"the customer has disabled runner `{row.name}`",
            "It goes on when the customer enables it: exclave stack enable",
        )
    return _tell(
        f"runner `{row.name}` is {presence.state}: {presence.cause}",
        f"On its machine, `exclave runner doctor` tells what is wrong. {enrol}",
    )


def _tell(message: str, hint: str) -> Blocker:
    return Blocker(lane=None, job_id=None, workflow_id=None, message=message, hint=hint)


def _advise_enrolment(tx: Tx, org: OrgId, queue: QueueId) -> str:
    found = queues.find_queue(tx, org, queue)
    if found is not None and found.kind == QueueKind.BUILD:
        return "Start a build runner: exclave runners enrol --build"
    install = installs.find_install(tx, org, queue)
    if install is not None and install.config_id is not None:
        return f"Let the customer run a Stack: exclave installs stack {install.name}"
    name = queue if install is None else install.name
    return f"Start a runner: exclave runners enrol --install {name}"


def _tell_closed(rows: Sequence[AnyRow]) -> str:
    if not rows:
        return "no runner was ever enrolled"
    last = rows[-1]
    return f"runner `{last.name}` is {last.state}: {last.state_reason}"
