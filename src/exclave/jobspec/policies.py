"""The jobs that put an app's policies into the cluster: objects of Kyverno, from the app's text."""

from collections.abc import Sequence

from exclave.appconfig.model.kinds.policies import Policy
from exclave.domain.intents import ApplyPart, PlanPart, ScanPart
from exclave.domain.lanes import POLICIES
from exclave.jobspec.facts import Render
from exclave.wire.kubernetes import ClusterRef, ManifestSpec
from exclave.wire.spec_fields import PlanRef

_NAMESPACE = "default"
"""Where policies that are not about the whole cluster go, unless they say so themselves."""
_TIMEOUT_S = 300.0


def make_policies_plan(
    policies: Sequence[Policy], render: Render, cluster: ClusterRef, intent: PlanPart | ScanPart
) -> ManifestSpec:
    """Return the job that plans all policies of the cluster as one set, or their removal."""
    texts = [render(policy.contents, f"policy {policy.name}") for policy in policies]
    return ManifestSpec(
        operation="plan",
        destroy=intent.destroy,
        workspace=POLICIES,
        cluster=cluster,
        namespace=_NAMESPACE,
        manifest=None if intent.destroy else "\n---\n".join(texts),
        delay_s=(intent.delay_s or 0.0) if isinstance(intent, PlanPart) else 0.0,
        timeout_s=_TIMEOUT_S,
    )


def make_policies_apply(
    cluster: ClusterRef, intent: ApplyPart, plan: PlanRef | None
) -> ManifestSpec:
    """Return the job that applies the plan that was approved."""
    return ManifestSpec(
        operation="apply",
        destroy=intent.destroy,
        workspace=POLICIES,
        cluster=cluster,
        namespace=_NAMESPACE,
        plan=plan,
        timeout_s=_TIMEOUT_S,
    )
