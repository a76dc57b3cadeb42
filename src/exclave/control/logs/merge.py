"""Merge logs: replace the many small pieces of a live stream by a few large ones.

Orgs take turns, and a turn is a bounded part of one log, so that neither a log of very many pieces
nor one that cannot be merged holds up the others. Merging only makes logs cheaper to read and keep:
nothing waits for it.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from exclave.base.errors import NotFound
from exclave.base.logs import Log
from exclave.control.deps import Deps
from exclave.control.logs.pieces import MAX_STORED, pack_piece, unpack_stored
from exclave.control.logs.stored_pieces import fetch_body, list_pieces, run_aside
from exclave.control.runtime.log_turns import LogTurns
from exclave.domain.identity import OrgId
from exclave.domain.jobs import ExecutionId
from exclave.domain.logs import LogSegment, UnmergedLog
from exclave.storage import logs
from exclave.storage.blobs.base import Blobs
from exclave.storage.engine.database import Tx

log = Log("logs")

_Note = Callable[[Tx, OrgId, ExecutionId, int], None]

CHORE = "log_merge"
"""The name of the chore."""
_PIECES = 500
"""Most pieces that are merged into one: each is a blob to read and to delete."""
_GROUPS = 4
"""Merged pieces that are made in one turn of an org."""
_LONGEST_S = 10.0
"""How long a round begins new turns."""
_GIVE_UP_WAITING = timedelta(days=1)
"""A log that its runner never completed is merged as it is after this time."""
_FIRST_PAUSE = timedelta(minutes=1)
_MOST_TRIES = 10
"""Pauses double from try to try: ten of them take most of a day."""


async def merge_logs(deps: Deps) -> int:
    """Merge until nothing is left or the time is up; return the number of turns.

    The next round goes on with the org after the last one.
    """
    turns, until = 0, deps.clock.monotonic() + _LONGEST_S
    while deps.clock.monotonic() < until:
        unmerged = await deps.db.read(lambda tx: _find_next(tx, deps.log_turns))
        if unmerged is None:
            break
        turns += await _give_turn(deps, unmerged)
    return turns


def _find_next(tx: Tx, turns: LogTurns) -> UnmergedLog | None:
    """Return the oldest log of the next org, wrapping around after the last one."""
    before = tx.now - _GIVE_UP_WAITING
    unmerged = logs.find_unmerged(tx, before, after=turns.merged_last)
    if unmerged is None and turns.merged_last:
        unmerged = logs.find_unmerged(tx, before, after="")
    turns.merged_last = "" if unmerged is None else unmerged.org_id
    return unmerged


async def _give_turn(deps: Deps, unmerged: UnmergedLog) -> bool:
    """Merge a part of a log; one that fails is retried later, and finally given up."""
    org, execution, tries, offset = unmerged

    def claim(tx: Tx) -> bool:
        again_at = tx.now + _FIRST_PAUSE * 2**tries
        return logs.claim_merge(tx, org, execution, tries=tries, again_at=again_at)

    if tries >= _MOST_TRIES:
        await _note(deps, org, logs.note_merged, execution, offset)
        return True
    if not await deps.db.write(claim, key=org):
        return False  # another server has it
    try:
        await merge_log(deps, org, execution, offset)
    except Exception as error:  # noqa: BLE001 - one tenant's log must not stop those of others
        deps.chores.of(CHORE).rows_failed += 1
        log.error("log_merge_failed", exc=error, org=org, execution=execution, tries=tries + 1)
    return True


async def merge_log(deps: Deps, org: OrgId, execution: ExecutionId, offset: int = 0) -> bool:
    """Merge some groups of a log's pieces from an offset on; return whether that was all."""
    groups = _GROUPS
    while segments := await list_pieces(deps, org, execution, offset, _PIECES):
        for group in group_pieces(segments):
            offset = group[-1].end
            if len(group) > 1:
                await _merge_group(deps, org, execution, group)
                groups -= 1
            if groups == 0:
                await _note(deps, org, logs.note_merged_to, execution, offset)
                return False
    await _note(deps, org, logs.note_merged, execution, offset)
    return True


async def _note(deps: Deps, org: OrgId, note: _Note, execution: ExecutionId, offset: int) -> None:
    await deps.db.write(lambda tx: note(tx, org, execution, offset), key=org)


def group_pieces(segments: Sequence[LogSegment]) -> Iterator[list[LogSegment]]:
    """Group neighbouring pieces up to the size of a merged piece."""
    group: list[LogSegment] = []
    for segment in segments:
        if group and segment.end - group[0].start > MAX_STORED:
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


async def _merge_group(
    deps: Deps, org: OrgId, execution: ExecutionId, group: Sequence[LogSegment]
) -> None:
    """Merge neighbouring pieces; a damaged or missing one is kept and splits the group."""
    run: list[LogSegment] = []
    data: list[bytes] = []
    for segment in group:
        piece = await _read_whole(deps.blobs, segment)
        if piece is None:
            await _replace(deps, org, execution, run, b"".join(data))
            run, data = [], []
        else:
            run.append(segment)
            data.append(piece)
    await _replace(deps, org, execution, run, b"".join(data))


async def _read_whole(blobs: Blobs, segment: LogSegment) -> bytes | None:
    size = segment.end - segment.start
    try:
        body = await fetch_body(blobs, segment)
    except NotFound:
        return None  # another server has merged it meanwhile, or it is lost
    data = await run_aside(size, lambda: unpack_stored(body, size))
    return data if len(data) == size else None


async def _replace(
    deps: Deps, org: OrgId, execution: ExecutionId, old: Sequence[LogSegment], data: bytes
) -> None:
    """Replace several pieces by one, which is one frame."""
    if len(old) < 2:  # noqa: PLR2004 - a single one is no group
        return
    body = await run_aside(len(data), lambda: pack_piece(data))
    blob = f"logs/{org}/{execution}/{old[0].start:015d}-{deps.ids.new('mrg')}.zst"
    await deps.blobs.put(blob, body)

    def swap(tx: Tx) -> bool:
        return logs.replace_segments(tx, org, execution, old, blob=blob, stored=len(body))

    swapped = await deps.db.write(swap, key=org)
    for gone in [segment.blob for segment in old] if swapped else [blob]:
        await deps.blobs.delete(gone)
