"""Components that are copied: one step without a gate, in the order of the graph."""

from exclave.domain.installs import DeployShape
from exclave.domain.intents import SyncPart
from exclave.domain.workflows import WorkflowKind
from exclave.flow.plans.drafts import Draft
from exclave.flow.plans.outline import Component, Outline, Request
from exclave.flow.plans.types import plan_steps


def outline(*, deployed: bool = False) -> Outline:
    image = Component("image", deployed=deployed, shape=DeployShape.COPIED)
    chart = Component("chart", needs=("image",), deployed=deployed)
    return Outline(components=(image, chart), has_sandbox=False)


def steps(
    kind: WorkflowKind, request: Request | None = None, *, deployed: bool = False
) -> list[Draft]:
    drafts = plan_steps(kind, outline(deployed=deployed), request or Request())
    return [draft for draft in drafts if draft.name != "runner"]


def test_an_image_is_copied_before_the_chart_that_uses_it_is_planned() -> None:
    sync, plan, *_ = steps(WorkflowKind.DEPLOY_ALL)

    assert (sync.name, sync.intent) == ("image.sync", SyncPart("component:image"))
    assert (sync.lanes, sync.mutating) == (("component:image",), False)
    assert (plan.name, plan.needs) == ("chart.plan", ("image.sync",))


def test_an_image_is_removed_after_the_chart_that_used_it() -> None:
    *_, apply, removal = steps(WorkflowKind.TEARDOWN_ALL, deployed=True)

    assert removal.intent == SyncPart("component:image", destroy=True)
    assert (removal.name, removal.needs) == ("image.remove", (apply.name,))


def test_an_image_has_no_plan_and_no_drift() -> None:
    both = ("image", "chart")
    alone = steps(WorkflowKind.DEPLOY, Request(components=both, plan_only=True))
    scan = steps(WorkflowKind.DRIFT_SCAN, Request(components=both), deployed=True)

    assert [draft.name for draft in alone] == ["chart.plan"]
    assert [draft.name for draft in scan] == ["chart.plan"]
