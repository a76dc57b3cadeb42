"""The plans of a component that were applied, which can be deployed again by their digest."""

from collections.abc import Sequence

from exclave.base.json_values import object_or_empty, text_or_empty
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.intents import StoredPlan, read_intent
from exclave.domain.lanes import slug
from exclave.storage import jobs, steps
from exclave.storage.engine.database import Tx

_LOOKED_AT = 50


def list_applied_plans(tx: Tx, org: OrgId, install: str, component: str) -> Sequence[StoredPlan]:
    """List the plans that were applied, newest first; the first one is deployed now."""
    plans: dict[str, StoredPlan] = {}
    queue, name = QueueId(install), f"{slug(component)}.apply"
    for applied in jobs.list_applied(tx, org, queue, name, limit=_LOOKED_AT):
        plan = object_or_empty(applied.spec.get("plan"))
        execution = text_or_empty(plan.get("execution_id"))
        digest = text_or_empty(plan.get("digest"))
        config = _find_config(tx, org, applied)
        if execution and digest and config:
            plans.setdefault(digest, StoredPlan(execution, digest, config))
    return list(plans.values())


def _find_config(tx: Tx, org: OrgId, applied: jobs.AppliedPlan) -> str:
    specs = steps.load_specs(tx, (org, applied.workflow_id), [applied.step])
    stored = read_intent(specs[applied.step])
    return "" if stored is None else stored.values.config
