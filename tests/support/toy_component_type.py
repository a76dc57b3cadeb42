"""A component type that has no entry yet: charts that scripts plan, apply and tear down."""

import pytest

from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.base.json_values import Json, JsonObject
from exclave.control.install_state.reported_outputs import read_count
from exclave.control.job_specs import component_types
from exclave.control.job_specs.component_types import PlannedType
from exclave.control.job_specs.part_results import PartResults, PlanResult
from exclave.domain.intents import ApplyPart, PartIntent, PlanPart, ScanPart
from exclave.domain.jobs import JobKind
from exclave.jobspec.facts import ApplyFacts, PartFacts, PlanFacts
from exclave.jobspec.texts import read_timeout, render_map
from exclave.wire.specs import ScriptSpec, ScriptStep

REVISION = 7
"""The revision of every release, for which a plan has to be made."""


def make_toy_plan(chart: HelmChart, facts: PlanFacts, intent: PlanPart | ScanPart) -> ScriptSpec:
    return _make_job(chart, facts, intent, "diff", ",".join(rule.name for rule in facts.policies))


def make_toy_apply(chart: HelmChart, facts: ApplyFacts, intent: ApplyPart) -> ScriptSpec:
    return _make_job(chart, facts, intent, "upgrade", facts.plan.digest)


def _make_job(
    chart: HelmChart, facts: PartFacts, intent: PartIntent, verb: str, extra: str
) -> ScriptSpec:
    release = facts.render(chart.chart_name, f"{intent.part}: chart_name")
    argv = [
        "toy",
        "uninstall" if intent.destroy else verb,
        release,
        facts.require_artifact().digest,
        extra,
    ]
    return ScriptSpec(
        steps=[ScriptStep(name=verb, argv=argv)],
        env=render_map(facts.render, chart.values, f"{intent.part}: values"),
        timeout_s=read_timeout(chart.deploy_timeout),
    )


def read_toy_plan(reported: JsonObject) -> PlanResult:
    return PlanResult(noop=not reported["changes"], serial=read_count(reported, "revision"))


def read_toy_outputs(reported: JsonObject) -> dict[str, Json]:
    return {"url": f"http://{reported['release']}/"}


TOY_CHART: PlannedType[HelmChart] = PlannedType(
    definition=HelmChart,
    artifact="helm_chart",
    policy="helm_chart",
    kind=JobKind.SCRIPT,
    make_plan=make_toy_plan,
    make_apply=make_toy_apply,
    find_serial=lambda _tx, _org, _install, _component: REVISION,
    results=PartResults(read_toy_plan, read_toy_outputs),
)


def add_toy_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the entry to the registry, for one test."""
    types = {**component_types.COMPONENT_TYPES, HelmChart.TYPE: TOY_CHART}
    monkeypatch.setattr(component_types, "COMPONENT_TYPES", types)
