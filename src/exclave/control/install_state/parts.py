"""Store what became of the parts of an install: the sandbox and each component."""

from collections.abc import Mapping
from typing import Any

from exclave.base.json_values import JsonObject
from exclave.control.install_state.state import Document, write_state
from exclave.domain.identity import OrgId
from exclave.domain.installs import PartState, component_of
from exclave.domain.lanes import SANDBOX
from exclave.storage import builds, install_parts
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
    fields = {
        "status": "active",
        "outputs": dict(outputs),
        "populated": True,
        "build_id": build_id,
        "type": str(source.get("directory", "")),
        "version": str(source.get("ref", "")),
    }
    write_state(tx, org, install, f"{part} deployed", _setter(install, part, fields), workflow)


def note_gone(tx: Tx, org: OrgId, install: str, part: str, workflow: str) -> None:
    """Store that a part was torn down."""
    install_parts.save_deployment(
        tx, org, install, part, PartState.ABSENT, workflow=workflow, config=None, build=None
    )
    fields = {"status": "inactive", "outputs": None, "populated": False, "build_id": ""}
    write_state(tx, org, install, f"{part} torn down", _setter(install, part, fields), workflow)


def note_failed(tx: Tx, org: OrgId, install: str, part: str, workflow: str, message: str) -> None:
    """Store that work on a part failed."""
    note_part(tx, org, install, part, PartState.FAILED, workflow=workflow, message=message)
    change = _setter(install, part, {"status": "error"})
    write_state(tx, org, install, f"{part} failed", change, workflow)


def _setter(install: str, part: str, fields: Mapping[str, Any]) -> Any:
    def change(document: Document) -> None:
        if part == SANDBOX:
            document["sandbox"] = {**document["sandbox"], **fields}
            document["sandbox"].pop("build_id", None)
            return
        name = component_of(part)
        kept = {key: value for key, value in fields.items() if key not in {"type", "version"}}
        ids = {"name": name, "component_id": name, "install_component_id": f"{install}:{name}"}
        old = document["components"].get(name, {"outputs": None, "populated": False})
        document["components"][name] = {**old, **ids, **kept}

    return change
