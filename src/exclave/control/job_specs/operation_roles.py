"""Choose the role that an operation runs with, by name; the runner resolves the name."""

from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.operation_roles import RoleRule
from exclave.control.definitions import list_definitions
from exclave.control.job_specs.context import Scope
from exclave.domain.intents import WorkflowValues

_ANY = "nuon::component:*"


def find_component_role(
    scope: Scope, component: Component, values: WorkflowValues, *, destroy: bool
) -> str:
    """Return the name of the role for a deploy or a teardown; empty: the usual one.

    A role given for this run wins, then the component's own rule, then the app's matrix, in which
    a rule for the component wins over one for all.
    """
    if values.role:
        return values.role
    operation = "teardown" if destroy else "deploy"
    where = f"component {component.name}: role of {operation}"
    for rule in component.operation_roles:
        if rule.operation == operation:
            return scope.render(rule.role, where)
    return scope.render(_find_in_matrix(scope, component.name, operation), where)


def _find_in_matrix(scope: Scope, component: str, operation: str) -> str:
    rules = list_definitions(scope.tx, scope.org, scope.config_id, RoleRule).values()
    fitting = {rule.principal: rule.role for rule in rules if rule.operation == operation}
    return fitting.get(f"nuon::component:{component}") or fitting.get(_ANY, "")
