"""The state of an install: one document per version, with all that templates can read.

Each event changes a part of the newest document and stores the result as the next version, in the
transaction of the event. What the tree shows twice is stored once and mirrored on reading.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias, cast

from exclave.base.errors import NotFound
from exclave.control.install_state.reported_outputs import OutputsInvalid
from exclave.domain.clouds import write_cloud_account
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.install_state import StateDocument, add_components
from exclave.domain.stacks import StackState
from exclave.storage import app_installs, install_states, queues
from exclave.storage.engine.database import Tx
from exclave.storage.engine.types import write_json

MOST_BYTES = 1024 * 1024
"""Of a version of the state: every template reads it, and every event writes it anew."""
_SMALL = 4096
_COPIED = 3
Change: TypeAlias = Callable[[StateDocument], None]


class StateTooLarge(OutputsInvalid):
    """All inputs and outputs of an install together pass a limit."""

    code = "state_too_large"
    hint = "Give fewer or shorter outputs and inputs; keep large values in files or secrets."


def first_state(
    tx: Tx, org: OrgId, install: str, components: Collection[str], inputs: Mapping[str, str]
) -> int:
    """Store the first version of a new install."""
    app_install = app_installs.find_app_install(tx, org, install)
    if app_install is None:
        raise NotFound("there is no such install of an app")
    document: StateDocument = {
        "id": install,
        "name": app_install.name,
        "org": {"id": org, "name": install_states.find_org_name(tx, org), "status": "active"},
        "app": {
            "id": app_install.app_id,
            "name": app_install.app_name,
            "status": "active",
            "variables": {},
        },
        "labels": dict(app_install.labels),
        "inputs": {"inputs": dict(inputs)},
        "install": {"id": install, "name": app_install.name},
        "cloud_account": write_cloud_account(app_install.target, app_install.place),
        "runner": {"id": "", "runner_group_id": "", "status": "pending"},
        "install_stack": {"populated": False, "status": StackState.AWAITING, "outputs": None},
        "sandbox": {"status": "", "type": "", "version": "", "outputs": None, "populated": False},
        "components": {},
        "actions": {"populated": False, "workflows": {}},
        "secrets": {},
    }
    add_components(document, components)
    _store(tx, org, install, 1, "created", None, document)
    return 1


def read_named_state(tx: Tx, org: OrgId, install: str) -> tuple[str, Mapping[str, object]]:
    """Read the newest version, and a name that no other version has."""
    newest = install_states.find_state(tx, org, install)
    if newest is None:
        raise NotFound("there is no such version of the install's state")
    return f"{install}@{newest.version}", complete(newest.document)


def complete(document: StateDocument) -> Mapping[str, object]:
    """Show a stored document as templates see it, with the older paths of the tree."""
    outputs = document["sandbox"]["outputs"] or {}
    domains = {
        key: value
        for key in ("public_domain", "internal_domain")
        if isinstance(value := outputs.get(key), str)
    }
    install = {
        "public_domain": "",
        "internal_domain": "",
        **document["install"],
        **domains,
        "inputs": document["inputs"]["inputs"],
        "sandbox": document["sandbox"],
        "components": document["components"],
    }
    return {**document, "domain": domains, "install": install}


def write_state(
    tx: Tx, org: OrgId, install: str, cause: str, change: Change, workflow: str | None = None
) -> int:
    """Change the newest document and store it as the next version; no change makes no version."""
    queues.lock_queue(tx, org, QueueId(install))
    newest = install_states.find_state(tx, org, install)
    if newest is None:
        raise NotFound("the install has no state")
    document = _copy(newest.document)
    change(document)
    if document == newest.document:
        return newest.version
    _refuse_growth(newest.document, document)
    _store(tx, org, install, newest.version + 1, cause, workflow, document)
    return newest.version + 1


def _copy(document: StateDocument) -> StateDocument:
    """Copy a document as deep as changes go; copying all of a large one takes long."""
    return cast("StateDocument", _copy_table(document, _COPIED))


def _copy_table(table: Mapping[str, object], depth: int) -> dict[str, object]:
    return {
        key: _copy_table(value, depth - 1) if depth and isinstance(value, dict) else value
        for key, value in table.items()
    }


def _refuse_growth(before: StateDocument, after: StateDocument) -> None:
    """Refuse what makes the state too large; small changes of a large one are still possible."""
    size = len(write_json(after))
    if size > MOST_BYTES and size > len(write_json(before)) + _SMALL:
        raise StateTooLarge(
            f"the install's state would have {size} bytes; {MOST_BYTES} are possible"
        )


def _store(
    tx: Tx,
    org: OrgId,
    install: str,
    version: int,
    cause: str,
    workflow: str | None,
    document: StateDocument,
) -> None:
    install_states.add_state(tx, org, install, version, cause, workflow, document)
    app_installs.set_state_version(tx, org, install, version)
    tx.wake(f"install:{install}")
