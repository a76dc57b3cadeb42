"""Gather the facts for jobs that put the app's policies into the cluster as objects."""

from exclave.appconfig.model.kinds.policies import CLUSTER, Policy
from exclave.control.definitions import list_definitions
from exclave.control.job_specs.cluster_access import find_cluster
from exclave.control.job_specs.context import Scope
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.intents import ApplyPart, PlanPart, ScanPart
from exclave.domain.lanes import POLICIES
from exclave.jobspec.policies import make_policies_apply, make_policies_plan
from exclave.storage import tf_states
from exclave.storage.engine.database import Tx
from exclave.wire.kubernetes import ManifestSpec
from exclave.wire.spec_fields import PlanRef


def make_policies_job(
    scope: Scope, intent: PlanPart | ScanPart | ApplyPart, plan: PlanRef | None
) -> ManifestSpec:
    """Return the job that plans the policies, or applies such a plan."""
    cluster = find_cluster(scope)
    if isinstance(intent, ApplyPart):
        return make_policies_apply(cluster, intent, plan)
    policies = list_definitions(scope.tx, scope.org, scope.config_id, Policy).values()
    texts = [policy for policy in policies if policy.type == CLUSTER]
    return make_policies_plan(texts, scope.render, cluster, intent)


def find_policies_serial(tx: Tx, org: OrgId, install: str) -> int:
    """Return the serial of what is known of the policies in the cluster; 0 if nothing is."""
    newest = tf_states.find_newest(tx, org, QueueId(install), POLICIES)
    return 0 if newest is None else newest.serial
