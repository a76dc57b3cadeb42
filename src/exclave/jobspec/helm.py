"""The jobs of components of type `helm_chart`."""

from collections.abc import Mapping

from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.domain.intents import ApplyPart, PartIntent, PlanPart, ScanPart
from exclave.domain.jobs import Reason
from exclave.jobspec.cluster_parts import fill_apply, fill_plan, is_rendered
from exclave.jobspec.errors import NotReady
from exclave.jobspec.facts import ApplyFacts, PartFacts, PlanFacts
from exclave.jobspec.texts import render_label, render_map
from exclave.wire.kubernetes import LONGEST_RELEASE, Crds, Driver, HelmSpec

_DRIVERS: Mapping[str, Driver] = {
    "": "auto",
    "nuon": "auto",
    "secret": "secret",
    "configmap": "configmap",
}
"""Where Helm keeps releases; `nuon` is accepted for existing app directories, and means `auto`."""


def make_helm_plan(
    definition: HelmChart, facts: PlanFacts, intent: PlanPart | ScanPart
) -> HelmSpec:
    """Return the job that plans a release or its removal, or looks for drift."""
    part, is_new = intent.part, is_rendered(facts, intent)
    override = facts.override if is_new else ""
    return HelmSpec(
        **fill_plan(definition, facts, intent),
        artifact=facts.require_artifact(),
        release=_render_release(definition, facts, intent),
        driver=_render_driver(definition, facts, intent),
        values=_render_values(definition, facts, part) if is_new else [],
        sets=render_map(facts.render, definition.values, f"{part}: values") if is_new else {},
        overrides=facts.render(override, f"{part}: helm_values of the install"),
        take_ownership=definition.take_ownership,
        take_over_release=isinstance(intent, PlanPart) and intent.take_over,
        crds=_choose_crds(definition),
    )


def make_helm_apply(definition: HelmChart, facts: ApplyFacts, intent: ApplyPart) -> HelmSpec:
    """Return the job that applies the plan that was approved; the plan has all values."""
    return HelmSpec(
        **fill_apply(definition, facts, intent),
        artifact=facts.require_artifact(),
        release=_render_release(definition, facts, intent),
        driver=_render_driver(definition, facts, intent),
        take_ownership=definition.take_ownership,
        crds=_choose_crds(definition),
    )


def _choose_crds(definition: HelmChart) -> Crds:
    match definition.crds:
        case "upgrade" if not definition.skip_crds:
            return "upgrade"
        case "create" if not definition.skip_crds:
            return "create"
        case _:
            return "skip"


def _render_values(definition: HelmChart, facts: PartFacts, part: str) -> list[str]:
    """Return the files of values so that the last wins: in app directories the first does."""
    texts = [
        facts.render(file.contents or file.path or file.source, f"{part}: values_file[{index}]")
        for index, file in enumerate(definition.values_file)
    ]
    return texts[::-1]


def _render_release(definition: HelmChart, facts: PartFacts, intent: PartIntent) -> str:
    where = f"{intent.part}: chart_name"
    name = render_label(facts.render, definition.chart_name, where)
    if len(name) > LONGEST_RELEASE:
        message = f"{where}: `{name}` has {len(name)} characters; Helm allows {LONGEST_RELEASE}"
        raise NotReady(Reason.RENDER_FAILED, message, hint="Choose a shorter name.")
    return name


def _render_driver(definition: HelmChart, facts: PartFacts, intent: PartIntent) -> Driver:
    where = f"{intent.part}: storage_driver"
    driver = _DRIVERS.get(facts.render(definition.storage_driver, where).strip())
    if driver is None:
        message = f"{where}: there is no such driver"
        raise NotReady(Reason.RENDER_FAILED, message, hint="Use `secret` or `configmap`.")
    return driver
