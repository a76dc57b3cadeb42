"""Find the plan that a component goes back to: one that was applied and became healthy."""

from collections.abc import Sequence

from exclave.appconfig.model.kinds.components import Component
from exclave.base.errors import Conflict, InvalidInput, NotFound
from exclave.control.definitions import find_definition
from exclave.control.job_specs.applied_plans import list_applied_plans
from exclave.control.job_specs.component_types import PlannedType, find_type
from exclave.domain.identity import OrgId
from exclave.domain.installs import AppInstall
from exclave.domain.intents import StoredPlan
from exclave.storage.engine.database import Tx

KEPT = 5
"""The plans of a component that it can go back to, beside the one that is deployed."""
PREVIOUS = "previous"


def find_earlier_plan(
    tx: Tx, org: OrgId, install: AppInstall, component: str, wanted: str
) -> StoredPlan:
    """Return the plan with a digest, or the one before the plan that is deployed."""
    refuse_outside_cluster(tx, org, install, component, "rolled back")
    plans = list_earlier_plans(tx, org, install, component)
    if wanted == PREVIOUS:
        if not plans:
            raise Conflict(
                f"`{component}` was never deployed otherwise",
                hint="A rollback needs an earlier deploy that ended well.",
            )
        return plans[0]
    plan = next((plan for plan in plans if plan.digest == wanted), None)
    if plan is None:
        known = ", ".join(plan.digest for plan in plans) or "none"
        raise NotFound(
            f"`{component}` has no earlier plan `{wanted}`", hint=f"It can go back to: {known}."
        )
    return plan


def list_earlier_plans(
    tx: Tx, org: OrgId, install: AppInstall, component: str
) -> Sequence[StoredPlan]:
    """List the plans that were applied before the one that is deployed now, newest first."""
    return list_applied_plans(tx, org, install.id, component)[1 : KEPT + 1]


def refuse_outside_cluster(
    tx: Tx, org: OrgId, install: AppInstall, component: str, verb: str
) -> None:
    """Refuse a component that has no plans of objects in a cluster."""
    definition = find_definition(tx, org, install.config_id, Component, component)
    if definition is None:
        raise InvalidInput(f"the app has no component `{component}`")
    type_ = find_type(definition)
    if not isinstance(type_, PlannedType) or not type_.needs_cluster:
        raise InvalidInput(
            f"a component of type `{definition.type}` cannot be {verb}",
            hint="Sync the config version that you want and deploy it.",
        )
