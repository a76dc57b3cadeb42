"""Store what became of the parts of an install: the sandbox and each component."""

from exclave.base.json_values import JsonObject
from exclave.control.install_state.state import write_state
from exclave.domain.identity import OrgId
from exclave.domain.install_state import (
    ComponentEntry,
    SandboxEntry,
    StateDocument,
    make_component_entry,
)
from exclave.domain.installs import PartState, component_of
from exclave.domain.lanes import POLICIES, SANDBOX
from exclave.storage import builds, drift_findings, install_parts, schedules
from exclave.storage.engine.database import Tx

MOST_REPLANS = 5
"""How often a stale plan is made again before a person has to decide."""


def note_part(
    tx: Tx,
    org: OrgId,
    install: str,
    part: str,
    state: PartState,
    *,
    workflow: str,
    message: str = "",
) -> None:
    """Store the state of a part; the install's state document stays as it is."""
    install_parts.save_state(tx, org, install, part, state, workflow=workflow, message=message)
    tx.wake(f"install:{install}")


def note_deployed(
    tx: Tx,
    org: OrgId,
    install: str,
    part: str,
    config: str,
    outputs: JsonObject,
    workflow: str,
) -> None:
    """Store that a part is deployed, and its outputs where templates read them."""
    build = builds.find_pinned(tx, org, config, part)
    build_id = "" if build is None else str(build.id)
    install_parts.save_deployment(
        tx,
        org,
        install,
        part,
        PartState.ACTIVE,
        workflow=workflow,
        config=config,
        build=build_id or None,
    )
    source = {} if build is None else build.source

    if part == POLICIES:  # templates read nothing of them
        return

    def change(document: StateDocument) -> None:
        entry = _get_entry(document, install, part)
        entry["status"], entry["populated"] = "active", True
        entry["outputs"] = dict(outputs)
        if part == SANDBOX:
            document["sandbox"]["type"] = str(source.get("directory", ""))
            document["sandbox"]["version"] = str(source.get("ref", ""))
        else:
            document["components"][component_of(part)]["build_id"] = build_id

    write_state(tx, org, install, f"{part} deployed", change, workflow)


def note_gone(tx: Tx, org: OrgId, install: str, part: str, workflow: str) -> None:
    """Store that a part was torn down."""
    install_parts.save_deployment(
        tx, org, install, part, PartState.ABSENT, workflow=workflow, config=None, build=None
    )
    schedules.drop_check(tx, org, install, part)
    drift_findings.close_all(tx, org, install, part)

    if part == POLICIES:  # templates read nothing of them
        return

    def change(document: StateDocument) -> None:
        entry = _get_entry(document, install, part)
        entry["status"], entry["populated"] = "inactive", False
        entry["outputs"] = None
        if part != SANDBOX:
            document["components"][component_of(part)]["build_id"] = ""

    write_state(tx, org, install, f"{part} torn down", change, workflow)


def note_failed(tx: Tx, org: OrgId, install: str, part: str, workflow: str, message: str) -> None:
    """Store that work on a part failed."""
    note_part(tx, org, install, part, PartState.FAILED, workflow=workflow, message=message)

    if part == POLICIES:  # templates read nothing of them
        return

    def change(document: StateDocument) -> None:
        _get_entry(document, install, part)["status"] = "error"

    write_state(tx, org, install, f"{part} failed", change, workflow)


def _get_entry(document: StateDocument, install: str, part: str) -> SandboxEntry | ComponentEntry:
    """Return the entry of a part; that of a component gets its ids."""
    if part == SANDBOX:
        return document["sandbox"]
    name = component_of(part)
    entry = document["components"].setdefault(name, make_component_entry(name))
    entry["name"], entry["component_id"] = name, name
    entry["install_component_id"] = f"{install}:{name}"
    return entry
