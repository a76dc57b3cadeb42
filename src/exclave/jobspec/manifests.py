"""The jobs of components of type `kubernetes_manifest`."""

from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest
from exclave.domain.intents import ApplyPart, PlanPart, ScanPart
from exclave.jobspec.cluster_parts import fill_apply, fill_plan, is_rendered
from exclave.jobspec.facts import ApplyFacts, PlanFacts
from exclave.wire.kubernetes import ManifestSpec


def make_manifest_plan(
    definition: KubernetesManifest, facts: PlanFacts, intent: PlanPart | ScanPart
) -> ManifestSpec:
    """Return the job that plans objects or their removal, or looks for drift."""
    fields = fill_plan(definition, facts, intent)
    if not is_rendered(facts, intent):
        return ManifestSpec(**fields)
    if definition.kustomize is not None:
        return ManifestSpec(**fields, artifact=facts.require_artifact())
    text = facts.render(definition.manifest, f"{intent.part}: manifest")
    return ManifestSpec(**fields, manifest=text)


def make_manifest_apply(
    definition: KubernetesManifest, facts: ApplyFacts, intent: ApplyPart
) -> ManifestSpec:
    """Return the job that applies the plan that was approved; the plan has all objects."""
    return ManifestSpec(**fill_apply(definition, facts, intent))
