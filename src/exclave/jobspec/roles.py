"""The role that a job runs with in the customer's account: which one wins, by what the app says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.operation_roles import RoleRule
from exclave.appconfig.model.kinds.permissions import STANDARD_ROLES, Role
from exclave.appconfig.model.kinds.shared import RoleRules
from exclave.domain.intents import (
    ApplyPart,
    AwaitBuilds,
    AwaitEvent,
    AwaitRunner,
    AwaitStack,
    CheckPart,
    Intent,
    PlanPart,
    RemoveSecrets,
    RunAction,
    ScanPart,
    SyncPart,
    SyncSecrets,
)
from exclave.domain.lanes import POLICIES
from exclave.domain.stacks import RoleKind
from exclave.domain.workflows import WorkflowKind
from exclave.wire.roles import Operation

SANDBOX: Final = "nuon::sandbox"
COMPONENT: Final = "nuon::component:"
ACTION: Final = "nuon::action:"
_ALL: Final = frozenset(
    {"AdministratorAccess", "arn:aws:iam::aws:policy/AdministratorAccess", "roles/owner", "Owner"}
)


@dataclass(frozen=True, slots=True)
class RoleFacts:
    """What an app's config says about roles, and what a person said for this run."""

    roles: Sequence[Role]
    """The roles of `permissions`, in the order of the app."""
    matrix: Sequence[RoleRule]
    override: str = ""


@dataclass(frozen=True, slots=True)
class RoleQuestion:
    """A job that is about to run: what it does, and to what."""

    operation: Operation
    principal: str = ""
    """As the matrix writes it; empty for what no rule of an app can name."""
    wanted: str = ""
    """The role that the thing itself names."""


def find_operation(intent: Intent, kind: str) -> Operation | None:
    """Return what the role of a step is used for; None if the step does nothing in the account."""
    match intent:
        case PlanPart() | ApplyPart() | ScanPart() if not intent.component:
            return _find_part_operation(intent, kind)
        case PlanPart() | ApplyPart() | ScanPart() | SyncPart() | CheckPart():
            return "teardown" if intent.destroy else "deploy"
        case RunAction():
            return "trigger"
        case SyncSecrets() | RemoveSecrets():
            return "provision"
        case AwaitRunner() | AwaitStack() | AwaitBuilds() | AwaitEvent():
            return None
        case _:
            assert_never(intent)


def _find_part_operation(intent: PlanPart | ApplyPart | ScanPart, kind: str) -> Operation:
    """Return the operation of the sandbox, or that of the policies in the cluster."""
    if intent.part == POLICIES:
        return "teardown" if intent.destroy else "deploy"
    if intent.destroy:
        return "deprovision"
    return "provision" if kind == WorkflowKind.PROVISION else "reprovision"


def find_wanted(definition: RoleRules, operation: Operation) -> str:
    """Return the role that a component or the sandbox names for an operation."""
    rules = {rule.operation: rule.role for rule in definition.operation_roles}
    return rules.get(operation, "")


def find_wanted_by_action(action: Action, trigger: str) -> str:
    """Return the role that an action names; that for emergencies only if a person started it."""
    return (action.break_glass_role if trigger == "manual" else "") or action.role


def choose_role(question: RoleQuestion, facts: RoleFacts) -> str:
    """Return the name of a role, as the app writes it; empty if the app has none for this.

    What a person gave for this run wins, then what the thing itself names, then the app's matrix,
    in which a rule for it wins over one for all, then the usual role of the operation.
    """
    return (
        facts.override
        or question.wanted
        or _find_in_matrix(question, facts.matrix)
        or _choose_usual(question, list_standard(facts.roles))
    )


def list_standard(roles: Sequence[Role]) -> Mapping[RoleKind, Role]:
    """Return the role of each standard kind; of several, the last one counts."""
    return {RoleKind(role.type): role for role in roles if role.type in STANDARD_ROLES}


def covers(role: Role, other: Role) -> bool:
    """Return whether a role plainly has all rights of another one."""
    mine = _list_rights(role)
    return bool(mine & _ALL) or _list_rights(other) <= mine


def _find_in_matrix(question: RoleQuestion, matrix: Sequence[RoleRule]) -> str:
    fitting = {rule.principal: rule.role for rule in matrix if rule.operation == question.operation}
    everything = f"{question.principal.rpartition(':')[0]}:*"
    return fitting.get(question.principal) or fitting.get(everything, "")


def _choose_usual(question: RoleQuestion, standard: Mapping[RoleKind, Role]) -> str:
    """Return the usual role; where a standard role is missing, maintenance stands in for it."""
    maintenance = standard.get(RoleKind.MAINTENANCE)
    match question.operation:
        case "provision" | "reprovision":
            role = standard.get(RoleKind.PROVISION, maintenance)
        case "deprovision":
            role = standard.get(RoleKind.DEPROVISION, maintenance)
        case "teardown":
            role = _choose_for_teardown(standard.get(RoleKind.DEPROVISION), maintenance)
        case "deploy" | "trigger" | "plan":
            role = maintenance
    return "" if role is None else role.name


def _choose_for_teardown(deprovision: Role | None, maintenance: Role | None) -> Role | None:
    """Return the role that removes components: deprovision if it may do what deploys need."""
    if deprovision is None or maintenance is None:
        return maintenance or deprovision
    return deprovision if covers(deprovision, maintenance) else maintenance


def _list_rights(role: Role) -> frozenset[str]:
    rights = {use.name for use in role.named_policies}
    for policy in role.policies:
        rights |= {
            policy.managed_policy_name,
            policy.contents,
            policy.gcp_predefined_role,
            *policy.gcp_permissions,
            *policy.azure_actions,
            *policy.azure_built_in_roles,
        }
    return frozenset(rights - {""})
