"""What an apply that was cut off left behind: its journal against the newest state."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exclave.base.errors import NotFound
from exclave.control.access import require_on
from exclave.control.deps import Deps
from exclave.domain.identity import InstallId, QueueId, Right, User
from exclave.domain.jobs import JobId, JobState
from exclave.domain.lanes import LaneState
from exclave.storage import attachments, jobs, queues, tf_states
from exclave.storage.database import AnyRow, Tx
from exclave.wire.terraform import Orphan, OrphansReply

_JOURNALS = 200


@dataclass(frozen=True, slots=True)
class Journal:
    """What a runner wrote down while it applied a plan."""

    workspace: str = ""
    created: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By address: creations that were completed."""
    begun: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By address: creations of which no end is known."""
    planned: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By address: creations that nobody saw begin, where the runner did not hear all."""
    gone: dict[str, set[str]] = field(default_factory=dict)
    """By address: ids of what was destroyed, so that something else could take its place."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the newest states hold."""

    ids: dict[str, set[str]] = field(default_factory=dict)
    """By workspace and address: the ids of resources."""
    writers: dict[str, str] = field(default_factory=dict)
    """By workspace: the execution that wrote the state."""


async def list_orphans(
    deps: Deps, user: User, install: InstallId, *, every: bool = False
) -> OrphansReply:
    """List what is made but not in the state, on lanes that wait for somebody to look at them.

    With `every`, also of applies that were lost earlier and whose lanes were released since.
    """

    def find(tx: Tx) -> tuple[Known, list[tuple[AnyRow, bool]]]:
        queue = QueueId(install)
        if queues.find_queue(tx, user.org, queue) is None:
            raise NotFound("there is no such install")
        require_on(tx, user, Right.READ, install, noun="install")
        return _list_known(tx, user, queue), _list_journals(tx, user, queue, every=every)

    found: list[Orphan] = []
    known, journals = await deps.db.read(find)
    for row, waits in journals:
        journal = read_journal(await deps.blobs.get(row.blob))
        found += compare(journal, known, row.execution_id, row.job_id, is_newest=waits)
    return OrphansReply(orphans=found)


def read_journal(data: bytes) -> Journal:
    """Read a journal; its last line may be torn."""
    journal = Journal()
    for event in _read_lines(data):
        kind, address = event.get("type"), event.get("addr")
        if kind == "begin":
            journal = Journal(str(event.get("workspace", "")))
        elif kind == "end":
            journal.planned.clear()
        elif isinstance(address, str):
            _read_event(journal, str(kind), address, event)
    return journal


def _read_event(journal: Journal, kind: str, address: str, event: Mapping[str, Any]) -> None:
    match kind, event.get("action"):
        case "planned_change", "create" | "replace":
            journal.planned[address] = event
        case _, "create":
            journal.planned.pop(address, None)
            journal.begun.pop(address, None)
            if kind == "apply_start":
                journal.begun[address] = event
            elif kind == "apply_complete":
                journal.created[address] = event
        case _, "delete":
            journal.gone.setdefault(address, set()).add(str(event.get("id_value") or ""))
            if kind == "apply_complete":
                journal.created.pop(address, None)


def compare(
    journal: Journal, known: Known, execution_id: str, job_id: str, *, is_newest: bool
) -> list[Orphan]:
    """Find what the journal tells of and the state does not; ids decide where both have one.

    What was begun may stand in the state with the id of what it replaces. So it does not count as
    known if that was destroyed, or if the journal is the newest one and wrote no state at all.
    """
    at = {"workspace": journal.workspace, "execution_id": execution_id, "job_id": job_id}
    is_older = is_newest and known.writers.get(journal.workspace) != execution_id
    found = []
    for address, event in journal.created.items():
        given = str(event.get("id_value") or "")
        ids = known.ids.get(f"{journal.workspace}\n{address}")
        if ids is None or (given and any(ids) and given not in ids):
            found.append(_make_orphan(address, event, "created", given, at))
    for address, event in journal.begun.items():
        ids = known.ids.get(f"{journal.workspace}\n{address}", set())
        if is_older or not ids - journal.gone.get(address, set()):
            found.append(_make_orphan(address, event, "unknown", "", at))
    for address, event in journal.planned.items():
        ids = known.ids.get(f"{journal.workspace}\n{address}", set())
        if not ids - journal.gone.get(address, set()):
            found.append(_make_orphan(address, event, "planned", "", at))
    return found


def write_import(address: str, identity: str) -> str:
    """Write the block that brings a resource into the state."""
    text = json.dumps(identity, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")
    return f"import {{\n  to = {address}\n  id = {text}\n}}\n"


def _make_orphan(
    address: str, event: Mapping[str, Any], certainty: str, identity: str, at: Mapping[str, str]
) -> Orphan:
    return Orphan.model_validate({
        **at, "address": address, "type": str(event.get("resource_type", "")),
        "certainty": certainty, "id_key": str(event.get("id_key") or ""), "id": identity,
        "import_block": write_import(address, identity) if identity else "",
        "at": event.get("at"),
    })  # fmt: skip


def _read_lines(data: bytes) -> Iterable[Mapping[str, Any]]:
    for line in data.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _list_known(tx: Tx, user: User, queue: QueueId) -> Known:
    known = Known()
    for row in tf_states.list_newest(tx, user.org, queue):
        known.writers[row.workspace] = row.execution_id
        for one in row.resources:
            key = f"{row.workspace}\n{one['address']}"
            known.ids.setdefault(key, set()).add(one.get("id", ""))
    return known


def _list_journals(tx: Tx, user: User, queue: QueueId, *, every: bool) -> list[tuple[AnyRow, bool]]:
    """List the journals of lost applies, and whether their lanes still wait for a look."""
    lanes = queues.list_lanes(tx, user.org, queue)
    waiting = {row.execution_id for row in lanes if row.state == LaneState.NEEDS_RECONCILE}
    rows = attachments.list_named(tx, user.org, queue, "journal.jsonl", limit=_JOURNALS)
    return [
        (row, row.execution_id in waiting)
        for row in rows
        if (every or row.execution_id in waiting) and _is_lost(tx, user, row)
    ]


def _is_lost(tx: Tx, user: User, row: AnyRow) -> bool:
    job = jobs.find_job(tx, user.org, JobId(row.job_id))
    return job is not None and job.state == JobState.LOST
