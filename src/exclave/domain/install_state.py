"""The state of an install: the document that templates read below `.nuon`, and its versions.

Every event changes a part of the newest document, so it is a tree of plain dicts and not of frozen
values. Its keys are a contract with app directories.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NotRequired, TypedDict

from exclave.base.json_values import JsonObject
from exclave.domain.workflows import WorkflowId


class InputsEntry(TypedDict):
    """The values of all inputs; placeholders in the place of sensitive ones."""

    inputs: dict[str, str]


class RunnerEntry(TypedDict):
    """The runner of the install."""

    id: str
    runner_group_id: str
    status: str


class StackEntry(TypedDict):
    """The customer's Stack and what it reported."""

    populated: bool
    status: str
    outputs: JsonObject | None


class SandboxEntry(TypedDict):
    """The sandbox."""

    status: str
    type: str
    version: str
    outputs: JsonObject | None
    populated: bool


class ComponentEntry(TypedDict):
    """A component."""

    name: str
    status: str
    build_id: str
    component_id: str
    install_component_id: str
    outputs: JsonObject | None
    populated: bool


class ActionEntry(TypedDict):
    """The last run of an action."""

    status: str
    id: str
    outputs: JsonObject | None
    populated: bool


class ActionsEntry(TypedDict):
    """All actions that ever ran, by name."""

    populated: bool
    workflows: dict[str, ActionEntry]


class SecretEntry(TypedDict):
    """A secret of the customer, by reference."""

    name: str
    arn: str
    exists: bool
    length: int
    kubernetes_secrets: NotRequired[list[dict[str, str]]]
    """Where it is in the cluster: namespace, name and key of each Secret."""


class StateDocument(TypedDict):
    """The state as it is stored; what templates see twice is stored once."""

    id: str
    name: str
    org: JsonObject
    app: JsonObject
    labels: dict[str, str]
    inputs: InputsEntry
    install: dict[str, str]
    cloud_account: JsonObject
    runner: RunnerEntry
    install_stack: StackEntry
    sandbox: SandboxEntry
    components: dict[str, ComponentEntry]
    actions: ActionsEntry
    secrets: dict[str, SecretEntry]


@dataclass(frozen=True, slots=True)
class StateVersion:
    """A stored version of an install's state."""

    version: int
    at: datetime
    cause: str
    workflow_id: WorkflowId | None
    document: StateDocument


def make_component_entry(name: str) -> ComponentEntry:
    """Return the entry of a component that was never deployed."""
    return {
        "name": name,
        "status": "",
        "build_id": "",
        "component_id": "",
        "install_component_id": "",
        "outputs": None,
        "populated": False,
    }


def add_components(document: StateDocument, names: Collection[str]) -> None:
    """Add an entry for every component of the app; drop those that were never deployed."""
    components = document["components"]
    for name in [name for name, entry in components.items() if not entry["populated"]]:
        if name not in names:
            del components[name]
    for name in set(names) - components.keys():
        components[name] = make_component_entry(name)
