"""Installs and their parts: states, names, and the decisions that depend on nothing else."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from exclave.domain.clouds import NOWHERE, CloudPlace
from exclave.domain.identity import InstallId
from exclave.domain.lanes import SANDBOX
from exclave.domain.stacks import Cloud
from exclave.domain.workflows import WorkflowId

_COMPONENT = "component:"
Overrides: TypeAlias = Mapping[str, Mapping[str, str]]
"""Texts that replace or extend what the app says, by component and kind (such as `tf_vars`)."""


class InstallState(StrEnum):
    """How far an install of an app is."""

    NEW = "new"
    PROVISIONING = "provisioning"
    ACTIVE = "active"
    FAILED = "failed"
    DEPROVISIONING = "deprovisioning"
    DEPROVISIONED = "deprovisioned"


class PartState(StrEnum):
    """How far the sandbox or a component of an install is."""

    ABSENT = "absent"
    """Never deployed, or torn down."""
    PLANNED = "planned"
    ACTIVE = "active"
    FAILED = "failed"
    """Work on it failed; something of it may exist."""


class DeployShape(StrEnum):
    """The steps by which a component gets into an install."""

    PLANNED = "planned"
    """A plan, an approval, an apply."""
    COPIED = "copied"
    """One step, which anybody may repeat: what is copied is known by its digest."""


class Drift(StrEnum):
    """What the last scan found out about a part."""

    UNKNOWN = ""
    """Not scanned since its last deploy or teardown."""
    NONE = "none"
    DRIFTED = "drifted"


class Health(StrEnum):
    """What the last check found out about a component in a cluster."""

    UNKNOWN = ""
    """Not checked since its last deploy, or nobody asks."""
    HEALTHY = "healthy"
    DEGRADED = "degraded"


class ApprovalOption(StrEnum):
    """Who approves the plans of an install."""

    PROMPT = "prompt"
    """People."""
    APPROVE_ALL = "approve-all"
    """Nobody: every plan is applied."""
    AUTO = "auto"
    """Policies, if all of them pass; otherwise people."""


class ManagedBy(StrEnum):
    """Who sets the inputs and options of an install."""

    PEOPLE = ""
    CONFIG = "config"
    """A file of the vendor, by `installs sync`."""


class PlainInstall(NamedTuple):
    """An install without an app: a queue for workflows that people write."""

    id: InstallId
    """Also the id of its queue."""
    name: str
    labels: Mapping[str, str]
    created_at: datetime


class AppInstall(NamedTuple):
    """An install of an app.

    A tuple: lists read many, and a frozen dataclass takes three times as long to make.
    """

    id: InstallId
    """Also the id of its queue."""
    name: str
    labels: Mapping[str, str]
    created_at: datetime
    app_id: str
    app_name: str
    config_id: str
    config_version: int
    config_by: str | None
    """The person who chose this config; None if that was before persons were recorded."""
    newest_id: str
    """The newest config of the app, to which an upgrade moves the install by default."""
    newest_version: int
    target: Cloud
    state: InstallState
    here: bool
    """Whether the server's own machine runs its Stack."""
    managed_by: ManagedBy
    state_version: int
    input_version: int
    approval: ApprovalOption
    toggles: Mapping[str, bool]
    """Components that are switched on or off here, whatever their default."""
    overrides: Overrides
    place: CloudPlace = NOWHERE

    @property
    def approves_all(self) -> bool:
        """Whether its workflows approve their plans themselves."""
        return self.approval is ApprovalOption.APPROVE_ALL


Install: TypeAlias = PlainInstall | AppInstall


@dataclass(frozen=True, slots=True)
class InstallPart:
    """The sandbox or a component of an install that was planned at least once."""

    name: str
    """`sandbox` or `component:<name>`."""
    state: PartState
    drift: Drift
    config_id: str | None
    """The config that it was deployed from; None if it is not deployed."""
    build_id: str | None
    workflow_id: WorkflowId | None
    """The last workflow that changed its state."""
    message: str
    changed_at: datetime
    drift_at: datetime | None
    """When it was last scanned for drift."""
    health: Health
    health_reason: str
    """Why it is not healthy, or why nobody could look."""
    health_at: datetime | None
    """When its health was last looked at."""


@dataclass(frozen=True, slots=True)
class InputVersion:
    """All values of an install's inputs that were set at a time; versions are only ever added."""

    version: int
    values: Mapping[str, str]
    sealed: Mapping[str, str]
    """Sensitive values, encrypted."""
    at: datetime
    by: str


@dataclass(frozen=True, slots=True)
class NewAppInstall:
    """What a new install of an app is stored with."""

    app_id: str
    config_id: str
    config_by: str
    target: Cloud
    approval: ApprovalOption = ApprovalOption.PROMPT
    here: bool = False
    state: InstallState = InstallState.NEW
    place: CloudPlace = NOWHERE


def name_part(component: str) -> str:
    """Return the name of a component's part; the sandbox's if there is no component."""
    return f"{_COMPONENT}{component}" if component else SANDBOX


def component_of(part: str) -> str:
    """Return the name of the component that a part is; empty for the sandbox."""
    return part.removeprefix(_COMPONENT) if part.startswith(_COMPONENT) else ""


def may_exist(state: PartState | None) -> bool:
    """Return whether resources of a part may exist; None is a part that was never planned.

    A failed first apply leaves resources behind.
    """
    return state is not None and state is not PartState.ABSENT


def is_empty(state: InstallState) -> bool:
    """Return whether an install in this state has nothing deployed."""
    return state in {InstallState.NEW, InstallState.DEPROVISIONED}


def takes_deploys(state: InstallState) -> bool:
    """Return whether components can be deployed to an install in this state."""
    match state:
        case InstallState.ACTIVE | InstallState.FAILED:
            return True
        case (
            InstallState.NEW
            | InstallState.PROVISIONING
            | InstallState.DEPROVISIONING
            | InstallState.DEPROVISIONED
        ):
            return False


def decide_state(parts: Mapping[str, PartState], wanted: Collection[str] | None) -> InstallState:
    """Return the state of an install from the states of its parts.

    `wanted` are the parts that its config has; None if the config is gone.
    """
    if not any(may_exist(state) for state in parts.values()):
        return InstallState.NEW
    if wanted is None or any(parts.get(part) is not PartState.ACTIVE for part in wanted):
        return InstallState.FAILED
    return InstallState.ACTIVE


def decide_approval(*, approve_all: bool, approval: ApprovalOption | None) -> ApprovalOption:
    """Return who approves the plans of an install, from the two columns that say so."""
    if approve_all:
        return ApprovalOption.APPROVE_ALL
    return ApprovalOption.AUTO if approval is ApprovalOption.AUTO else ApprovalOption.PROMPT
