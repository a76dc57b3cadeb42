"""Installs and their parts: states, names, and the decisions that depend on nothing else."""

from collections.abc import Collection, Mapping
from enum import StrEnum

from exclave.domain.lanes import SANDBOX

_COMPONENT = "component:"


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


class Drift(StrEnum):
    """What the last scan found out about a part."""

    UNKNOWN = ""
    """Not scanned since its last deploy or teardown."""
    NONE = "none"
    DRIFTED = "drifted"


class ApprovalOption(StrEnum):
    """Who approves the plans of an install."""

    PROMPT = "prompt"
    """People."""
    APPROVE_ALL = "approve-all"
    """Nobody: every plan is applied."""
    AUTO = "auto"
    """Policies, if all of them pass; otherwise people."""


def name_part(component: str) -> str:
    """Return the name of a component's part; the sandbox's if there is no component."""
    return f"{_COMPONENT}{component}" if component else SANDBOX


def component_of(part: str) -> str:
    """Return the name of the component that a part is; empty for the sandbox."""
    return part.removeprefix(_COMPONENT) if part.startswith(_COMPONENT) else ""


def may_exist(state: str | None) -> bool:
    """Return whether resources of a part may exist; None is a part that was never planned.

    A failed first apply leaves resources behind.
    """
    return state is not None and state != PartState.ABSENT


def is_empty(state: str | None) -> bool:
    """Return whether an install in this state has nothing deployed; None: it is of no app."""
    return state in {None, InstallState.NEW, InstallState.DEPROVISIONED}


def takes_deploys(state: str) -> bool:
    """Return whether components can be deployed to an install in this state."""
    match InstallState(state):
        case InstallState.ACTIVE | InstallState.FAILED:
            return True
        case (
            InstallState.NEW
            | InstallState.PROVISIONING
            | InstallState.DEPROVISIONING
            | InstallState.DEPROVISIONED
        ):
            return False


def decide_state(parts: Mapping[str, str], wanted: Collection[str] | None) -> InstallState:
    """Return the state of an install from the states of its parts.

    `wanted` are the parts that its config has; None if the config is gone.
    """
    if not any(may_exist(state) for state in parts.values()):
        return InstallState.NEW
    if wanted is None or any(parts.get(part) != PartState.ACTIVE for part in wanted):
        return InstallState.FAILED
    return InstallState.ACTIVE


def decide_drift(*, noop: bool) -> Drift:
    """Return what a scan says about a part whose plan has, or has not, changes."""
    return Drift.NONE if noop else Drift.DRIFTED


def decide_approval(*, approve_all: bool, approval: str | None) -> ApprovalOption:
    """Return who approves the plans of an install."""
    if approve_all:
        return ApprovalOption.APPROVE_ALL
    return ApprovalOption.AUTO if approval == ApprovalOption.AUTO else ApprovalOption.PROMPT
