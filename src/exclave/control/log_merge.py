"""Merging logs: the many small pieces of a live stream become a few large segments."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from exclave.base.errors import NotFound
from exclave.control.deps import Deps
from exclave.domain.identity import OrgId
from exclave.domain.jobs import ExecutionId
from exclave.storage import logs
from exclave.storage.database import AnyRow, Tx

MERGED_BYTES = 4 << 20
"""Most bytes of the uncompressed stream in one merged segment."""
_AT_A_TIME = 20
_GIVE_UP_WAITING = timedelta(days=1)
"""A log that its runner never completed is merged as it is after this time."""


async def merge_logs(deps: Deps) -> int:
    """Merge the logs that became whole since the last time; tell how many."""
    rows = await deps.db.read(
        lambda tx: logs.list_unmerged(tx, tx.now - _GIVE_UP_WAITING, _AT_A_TIME)
    )
    for row in rows:
        await merge_log(deps, OrgId(row.org_id), ExecutionId(row.id))
    return len(rows)


async def merge_log(deps: Deps, org: OrgId, execution: ExecutionId) -> None:
    """Merge one log. Pieces of zstd need no unpacking: one after the other they are one stream."""
    segments = await deps.db.read(lambda tx: logs.list_segments(tx, org, execution))
    for group in group_segments(segments):
        await _merge_group(deps, org, execution, group)
    await deps.db.write(lambda tx: logs.note_merged(tx, org, execution), key=org)


def group_segments(segments: Sequence[AnyRow]) -> Iterator[list[AnyRow]]:
    """Put neighbours together up to the size of a merged segment; what stays alone is left out."""
    group: list[AnyRow] = []
    for segment in segments:
        if group and segment.end - group[0].start > MERGED_BYTES:
            if len(group) > 1:
                yield group
            group = []
        group.append(segment)
    if len(group) > 1:
        yield group


async def _merge_group(
    deps: Deps, org: OrgId, execution: ExecutionId, group: Sequence[AnyRow]
) -> None:
    try:
        data = b"".join([await deps.blobs.get(segment.blob) for segment in group])
    except NotFound:
        return  # another server has merged them meanwhile
    blob = f"logs/{org}/{execution}/{group[0].start:015d}-{deps.ids.new('mrg')}.zst"
    await deps.blobs.put(blob, data)

    def swap(tx: Tx) -> bool:
        return logs.replace_segments(tx, org, execution, group, blob=blob)

    swapped = await deps.db.write(swap, key=org)
    for old in [segment.blob for segment in group] if swapped else [blob]:
        await deps.blobs.delete(old)
