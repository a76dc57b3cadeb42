"""Find the role that the job of a step runs with, by name; the runner resolves the name."""

from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.operation_roles import RoleRule
from exclave.appconfig.model.kinds.permissions import Role
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.control.definitions import list_definitions
from exclave.control.job_specs.actions import find_action
from exclave.control.job_specs.context import Scope
from exclave.domain.intents import (
    ApplyPart,
    CheckPart,
    Intent,
    PlanPart,
    RunAction,
    ScanPart,
    StepIntent,
    SyncPart,
)
from exclave.domain.lanes import POLICIES
from exclave.domain.stacks import Cloud
from exclave.jobspec.roles import (
    ACTION,
    COMPONENT,
    SANDBOX,
    RoleFacts,
    RoleQuestion,
    choose_role,
    find_operation,
    find_wanted,
    find_wanted_by_action,
)
from exclave.wire.roles import Operation, RoleWish


def find_role(scope: Scope, stored: StepIntent) -> RoleWish | None:
    """Return the role of a step's job; None on the customer's own machine, which has no roles."""
    intent = stored.intent
    operation = find_operation(intent, stored.values.kind)
    if operation is None or scope.row.target is Cloud.LOCAL:
        return None
    roles = list_definitions(scope.tx, scope.org, scope.config_id, Role).values()
    matrix = list_definitions(scope.tx, scope.org, scope.config_id, RoleRule).values()
    facts = RoleFacts(
        roles=[*roles],
        matrix=[*matrix],
        override=stored.values.role,
    )
    question = _ask(scope, intent, operation)
    chosen = choose_role(question, facts)
    name = scope.render(chosen, f"role of {question.principal or operation}")
    used_for: Operation = "plan" if isinstance(intent, ScanPart) else operation
    return RoleWish(name=name, operation=used_for) if name else None


def _ask(scope: Scope, intent: Intent, operation: Operation) -> RoleQuestion:
    match intent:
        case RunAction():
            action = find_action(scope, intent)
            wanted = find_wanted_by_action(action, intent.trigger)
            return RoleQuestion(operation, f"{ACTION}{action.name}", wanted)
        case PlanPart() | ApplyPart() | ScanPart() | SyncPart() | CheckPart() if intent.component:
            component = scope.find_definition(Component, intent.component)
            wanted = find_wanted(component, operation)
            return RoleQuestion(operation, f"{COMPONENT}{intent.component}", wanted)
        case PlanPart() | ApplyPart() | ScanPart() if intent.part != POLICIES:
            wanted = find_wanted(scope.find_definition(Sandbox), operation)
            return RoleQuestion(operation, SANDBOX, wanted)
        case _:
            return RoleQuestion(operation)
