"""Orphaned resources: created by an interrupted apply, but not in the newest state."""

from exclave.base.errors import NotFound
from exclave.control.access import require_on
from exclave.control.deps import Deps
from exclave.control.terraform.journals import Known, find_orphans
from exclave.control.workers.pool import TookTooLong, TookTooMuch, WorkerDied
from exclave.domain.attachments import ListedAttachment
from exclave.domain.identity import InstallId, QueueId, Right, User
from exclave.domain.jobs import JobState
from exclave.domain.lanes import LaneState
from exclave.storage import attachments, jobs, queues, tf_states
from exclave.storage.engine.database import Tx
from exclave.wire.terraform import Orphan, OrphansReply

_JOURNALS = 200
_JOURNAL_S = 10.0
"""How long reading one journal may take."""


async def list_orphans(
    deps: Deps, user: User, install: InstallId, *, every: bool = False
) -> OrphansReply:
    """List resources that were created but are not in the state, on lanes to be reconciled.

    With `every`, include earlier lost applies whose lanes were released since.
    """

    def find(tx: Tx) -> tuple[Known, list[tuple[ListedAttachment, bool]]]:
        queue = QueueId(install)
        if queues.find_queue(tx, user.org, queue) is None:
            raise NotFound("there is no such install")
        require_on(tx, user, Right.READ, install, noun="install")
        return _list_known(tx, user, queue), _list_journals(tx, user, queue, every=every)

    orphans: list[Orphan] = []
    unread: list[str] = []
    known, journals = await deps.db.read(find)
    for row, waits in journals:
        data = await deps.blobs.get(row.blob)
        try:
            lost, is_whole = await deps.workers.run(
                user.org,
                find_orphans,
                data,
                known,
                (row.execution_id, row.job_id),
                waits,
                seconds=_JOURNAL_S,
            )
        except (TookTooLong, TookTooMuch, WorkerDied):
            # One journal that cannot be read must not hide what the others tell.
            lost, is_whole = [], False
        orphans += lost
        unread += [] if is_whole else [row.execution_id]
    return OrphansReply(orphans=orphans, unread=unread)


def _list_known(tx: Tx, user: User, queue: QueueId) -> Known:
    known = Known()
    for row in tf_states.list_newest(tx, user.org, queue):
        known.writers[row.workspace] = row.execution_id
        known.resources[row.workspace] = [
            (resource["address"], resource.get("id", "")) for resource in row.resources
        ]
    return known


def _list_journals(
    tx: Tx, user: User, queue: QueueId, *, every: bool
) -> list[tuple[ListedAttachment, bool]]:
    """Return the journals of lost applies, and whether their lanes still need reconciliation."""
    lanes = queues.list_lanes(tx, user.org, queue)
    waiting = {row.execution_id for row in lanes if row.state == LaneState.NEEDS_RECONCILE}
    rows = attachments.list_named(tx, user.org, queue, "journal.jsonl", limit=_JOURNALS)
    return [
        (row, row.execution_id in waiting)
        for row in rows
        if (every or row.execution_id in waiting) and _is_lost(tx, user, row)
    ]


def _is_lost(tx: Tx, user: User, row: ListedAttachment) -> bool:
    job = jobs.find_job(tx, user.org, row.job_id)
    return job is not None and job.state == JobState.LOST
