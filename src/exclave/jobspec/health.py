"""Jobs that look whether a component in a cluster is healthy."""

from exclave.appconfig.model.kinds.components import Health, Probe, WatchedComponent
from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest
from exclave.domain.intents import CheckPart
from exclave.domain.jobs import Reason
from exclave.jobspec.errors import NotReady
from exclave.jobspec.facts import PartFacts, Render
from exclave.jobspec.texts import read_timeout, render_label
from exclave.jobspec.workspaces import name_workspace
from exclave.wire.kubernetes import HealthProbe, HealthRules, HealthSpec

_PLACEHOLDER = "((exclave:"


def make_health_job(
    definition: HelmChart | KubernetesManifest, facts: PartFacts, intent: CheckPart
) -> HealthSpec:
    """Return the job that looks at a component at the end of its window."""
    rules = make_health_rules(definition, facts.render, intent.part)
    if rules is None:
        raise NotReady(Reason.DISABLED, f"`{intent.component}` has no health checks any more")
    return HealthSpec(
        workspace=name_workspace(intent.component),
        cluster=facts.require_cluster(),
        namespace=render_label(facts.render, definition.namespace, f"{intent.part}: namespace"),
        rules=rules,
    )


def make_health_rules(
    definition: WatchedComponent, render: Render, part: str
) -> HealthRules | None:
    """Return what makes a component healthy; None if nobody asks."""
    health = definition.health
    if health is None or not health.enabled:
        return None
    where = f"{part}: health.stabilization_window"
    return HealthRules(
        window_s=read_timeout(render(health.stabilization_window, where)),
        block=health.block_deploy,
        required=list(health.required_checks),
        probes=_make_probes(health, render, part),
    )


def _make_probes(health: Health, render: Render, part: str) -> list[HealthProbe]:
    return [_make_probe(probe, render, f"{part}: probe {probe.name}") for probe in health.probes]


def _make_probe(probe: Probe, render: Render, where: str) -> HealthProbe:
    url = render(probe.url, where)
    command = [render(word, where) for word in probe.command]
    if any(_PLACEHOLDER in text for text in (url, *command)):
        message = f"{where}: it uses a sensitive value, which would be shown to everybody"
        hint = "Let an exec probe read it from the environment of its container."
        raise NotReady(Reason.RENDER_FAILED, message, hint=hint)
    return HealthProbe.model_validate(
        {"name": probe.name, "type": probe.type, "url": url, "command": command}
    )
