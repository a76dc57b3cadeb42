"""Build a step graph: named steps, each after others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from exclave.domain.installs import DeployShape, component_of, name_part
from exclave.domain.intents import ApplyPart, Intent, PlanPart, ScanPart, SyncPart
from exclave.domain.lanes import POLICIES, SANDBOX, component_lane, slug
from exclave.domain.workflows import StepKind
from exclave.flow.plans.outline import Component

Front = tuple[str, ...]
"""The steps after which the next ones begin."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A step to be stored; its intent becomes a job when the step begins."""

    name: str
    kind: StepKind
    needs: Front
    lanes: tuple[str, ...] = ()
    mutating: bool = False
    intent: Intent | None = None
    """What a job or a wait is for; gates have none."""


class GraphBuilder:
    """Collects the steps of a workflow and keeps their names unique."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self._names: set[str] = set()

    def job(
        self,
        name: str,
        after: Front,
        intent: Intent,
        *,
        lanes: Sequence[str] = (),
        mutating: bool = False,
    ) -> Front:
        """Add a step that a runner executes."""
        kind = StepKind.JOB
        return self._add(Draft(name, kind, after, tuple(lanes), mutating, intent))

    def wait(self, name: str, after: Front, intent: Intent) -> Front:
        """Add a step that waits for something outside of the workflow."""
        return self._add(Draft(name, StepKind.WAIT, after, intent=intent))

    def gate(self, name: str, after: Front) -> Front:
        """Add an approval of what the step before it produced."""
        return self._add(Draft(name, StepKind.GATE, after))

    def _add(self, draft: Draft) -> Front:
        name, number = draft.name, 1
        while name in self._names:
            number += 1
            name = f"{draft.name}-{number}"
        self._names.add(name)
        self.drafts.append(replace(draft, name=name))
        return (name,)


def add_sandbox(
    graph: GraphBuilder, after: Front, *, destroy: bool = False, auto: bool = False
) -> Front:
    """Add a plan of the sandbox, a gate, and an apply of exactly that plan."""
    stem = "sandbox-destroy" if destroy else "sandbox"
    plan = PlanPart(SANDBOX, destroy, auto)
    return _add_planned(graph, stem, "-", SANDBOX, plan, after)


def add_policies(
    graph: GraphBuilder, after: Front, *, destroy: bool = False, auto: bool = False
) -> Front:
    """Add a plan of the policies in the cluster, a gate, and an apply of exactly that plan."""
    stem = "policies-destroy" if destroy else "policies"
    return _add_planned(graph, stem, "-", POLICIES, PlanPart(POLICIES, destroy, auto), after)


def add_component(
    graph: GraphBuilder, component: Component, after: Front, *, destroy: bool = False
) -> Front:
    """Add the steps that deploy a component or tear it down."""
    match component.shape:
        case DeployShape.PLANNED:
            return _add_planned_component(graph, component, after, destroy=destroy)
        case DeployShape.COPIED:
            return _add_copy(graph, component.name, after, destroy=destroy)


def add_plan(graph: GraphBuilder, part: str, after: Front) -> Front:
    """Add a plan of a part that nothing follows."""
    component = component_of(part)
    name = f"{slug(component)}.plan" if component else "sandbox-plan"
    lane = component_lane(component) if component else SANDBOX
    return graph.job(name, after, ScanPart(part), lanes=[lane])


def _add_planned(
    graph: GraphBuilder, stem: str, dot: str, lane: str, plan: PlanPart, after: Front
) -> Front:
    planned = graph.job(f"{stem}{dot}plan", after, plan, lanes=[lane])
    approved = graph.gate(f"{stem}{dot}approve", planned)
    apply = ApplyPart(plan.part, planned[0], plan.destroy)
    return graph.job(f"{stem}{dot}apply", approved, apply, lanes=[lane], mutating=True)


def _add_planned_component(
    graph: GraphBuilder, component: Component, after: Front, *, destroy: bool
) -> Front:
    name, auto = component.name, component.auto_approve and not destroy
    plan = PlanPart(
        name_part(name),
        destroy,
        auto,
        rollback_to=None if destroy else component.rollback_to,
        take_over=component.take_over,
        adopt=component.adopt and not destroy,
    )
    stem = f"{slug(name)}.destroy" if destroy else slug(name)
    dot = "-" if destroy else "."
    return _add_planned(graph, stem, dot, component_lane(name), plan, after)


def _add_copy(graph: GraphBuilder, component: str, after: Front, *, destroy: bool) -> Front:
    """Add a copy; it is not mutating, so a lost one is simply offered again."""
    name = f"{slug(component)}.{'remove' if destroy else 'sync'}"
    intent = SyncPart(name_part(component), destroy)
    return graph.job(name, after, intent, lanes=[component_lane(component)])
