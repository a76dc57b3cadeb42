"""Compare the journal of an apply with the newest states, to find resources in none of them.

A runner wrote it, so reading is bounded, and runs in a worker process: see `reconcile`.
"""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from exclave.base.json_values import JsonObject
from exclave.domain.tf_addresses import read_address, read_name, write_import
from exclave.wire.terraform import Certainty, Orphan

_LINES = 200_000
"""Events of one journal that are looked at."""
_ORPHANS = 5_000
"""Most resources that are listed of one journal."""
_TEXT = 2000
_WORKSPACE = re.compile(r"sandbox|component:[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class Journal:
    """The events that a runner recorded while it applied a plan."""

    workspace: str = ""
    created: dict[str, JsonObject] = field(default_factory=dict)
    """By address: creations that were completed."""
    begun: dict[str, JsonObject] = field(default_factory=dict)
    """By address: creations of which no end is known."""
    planned: dict[str, JsonObject] = field(default_factory=dict)
    """By address: creations that nobody saw begin, where the runner did not hear all."""
    gone: dict[str, set[str]] = field(default_factory=dict)
    """By address: ids of what was destroyed, so that something else could take its place."""


@dataclass(frozen=True, slots=True)
class _Source:
    """The apply that a journal is of."""

    workspace: str
    execution_id: str
    job_id: str


@dataclass(frozen=True, slots=True)
class Known:
    """The resources in the newest states."""

    resources: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """By workspace: addresses, as they were handed in, and ids."""
    writers: dict[str, str] = field(default_factory=dict)
    """By workspace: the execution that wrote the state."""


def find_orphans(
    data: bytes,
    known: Known,
    ids: tuple[str, str],
    is_newest: bool,  # noqa: FBT001 - it is pickled
) -> tuple[list[Orphan], bool]:
    """Return resources of a journal that no state has, and whether all of it was read."""
    journal, is_whole = read_journal(data)
    lost = compare(journal, known, *ids, is_newest=is_newest)
    return lost[:_ORPHANS], is_whole and len(lost) <= _ORPHANS


def read_journal(data: bytes) -> tuple[Journal, bool]:
    """Return the events of a journal, and whether all was read; its last line may be torn.

    A runner wrote it, so an event that cannot be read is skipped, and never an error.
    """
    journal = Journal()
    for number, event in enumerate(_read_lines(data)):
        if number >= _LINES:
            return journal, False
        kind, address = event.get("type"), event.get("addr")
        if kind == "begin":
            journal = Journal(_read_workspace(event.get("workspace")))
        elif kind == "end":
            journal.planned.clear()
        elif isinstance(address, str):
            _read_event(journal, str(kind), read_address(address), event)
    return journal, True


def _read_event(journal: Journal, kind: str, address: str, event: JsonObject) -> None:
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
            journal.gone.setdefault(address, set()).add(_read_identity(event))
            if kind == "apply_complete":
                journal.created.pop(address, None)


def compare(
    journal: Journal, known: Known, execution_id: str, job_id: str, *, is_newest: bool
) -> list[Orphan]:
    """Return resources of the journal that the state lacks; compared by id where both have one.

    What was planned or begun may stand in the state with the id of what it replaces. So it does not
    count as known if that was destroyed, or if the journal is the newest one and wrote no state at
    all: a runner that was killed has not read everything that Terraform did.
    """
    known_ids: dict[str, set[str]] = {}
    for address, identity in known.resources.get(journal.workspace, ()):
        known_ids.setdefault(read_address(address), set()).add(identity)
    source = _Source(journal.workspace, execution_id, job_id)
    is_older = is_newest and known.writers.get(journal.workspace) != execution_id
    orphans = []
    for address, event in journal.created.items():
        given = _read_identity(event)
        ids = known_ids.get(address)
        if ids is None or (given and any(ids) and given not in ids):
            orphans.append(_make_orphan(address, event, "created", given, source))
    for address, event in journal.begun.items():
        ids = known_ids.get(address, set())
        if is_older or not ids - journal.gone.get(address, set()):
            orphans.append(_make_orphan(address, event, "unknown", "", source))
    for address, event in journal.planned.items():
        ids = known_ids.get(address, set())
        if is_older or not ids - journal.gone.get(address, set()):
            orphans.append(_make_orphan(address, event, "planned", "", source))
    return orphans


def _make_orphan(
    address: str, event: JsonObject, certainty: Certainty, identity: str, source: _Source
) -> Orphan:
    return Orphan(
        workspace=source.workspace,
        address=address,
        type=_read_text(event, "resource_type"),
        certainty=certainty,
        id_key=_read_text(event, "id_key"),
        id=identity,
        import_block=write_import(address, identity) if identity else "",
        execution_id=source.execution_id,
        job_id=source.job_id,
        at=_read_time(event.get("at")),
    )


def _read_text(event: JsonObject, key: str) -> str:
    """Return a text that a reply can hold: cut to a maximum length, without lone surrogates."""
    text = str(event.get(key) or "")[:_TEXT]
    return text.encode("utf-8", "replace").decode()


def _read_identity(event: JsonObject) -> str:
    """Return the complete id of a resource, or nothing: a part would import another one."""
    text = str(event.get("id_value") or "")
    return text if len(text) <= _TEXT and _read_text(event, "id_value") == text else ""


def _read_time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None


def _read_workspace(value: object) -> str:
    text = str(value or "")
    return text if _WORKSPACE.fullmatch(text) else read_name(text)


def _read_lines(data: bytes) -> Iterator[JsonObject]:
    for line in io.BytesIO(data):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event
