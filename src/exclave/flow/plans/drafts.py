"""Drawing a step graph: named steps, each after a front of others."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from exclave.domain.installs import component_of, name_part
from exclave.domain.lanes import SANDBOX
from exclave.domain.workflows import StepKind
from exclave.flow.plans.intents import ApplyPart, Intent, PlanPart, ScanPart

Front = tuple[str, ...]
"""The steps after which the next ones begin."""

_ODD = re.compile(r"[^a-z0-9_-]+")


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


def slug(name: str) -> str:
    """Write a name so that it can be a part of a step's or a lane's name."""
    return _ODD.sub("-", name.lower()).strip("-") or "x"


def component_lane(name: str) -> str:
    """Name the lane that guards a component."""
    return f"component:{slug(name)}"


class Drawing:
    """Collects drafts; names are unique."""

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
        """Add a step that a runner does."""
        kind = StepKind.JOB
        return self._add(Draft(name, kind, after, tuple(lanes), mutating, intent))

    def wait(self, name: str, after: Front, intent: Intent) -> Front:
        """Add a step that waits for the outside world."""
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


def draw_sandbox(
    drawing: Drawing, after: Front, *, destroy: bool = False, auto: bool = False
) -> Front:
    """Plan the sandbox, ask, apply exactly that plan."""
    stem = "sandbox-destroy" if destroy else "sandbox"
    plan = PlanPart(SANDBOX, destroy, auto)
    return _draw_planned(drawing, stem, "-", SANDBOX, plan, after)


def draw_component(
    drawing: Drawing, name: str, after: Front, *, destroy: bool = False, auto: bool = False
) -> Front:
    """Plan a component, ask, apply exactly that plan."""
    plan = PlanPart(name_part(name), destroy, auto)
    stem = f"{slug(name)}.destroy" if destroy else slug(name)
    dot = "-" if destroy else "."
    return _draw_planned(drawing, stem, dot, component_lane(name), plan, after)


def draw_plan(drawing: Drawing, part: str, after: Front) -> Front:
    """Plan a part, and nothing else."""
    component = component_of(part)
    name = f"{slug(component)}.plan" if component else "sandbox-plan"
    lane = component_lane(component) if component else SANDBOX
    return drawing.job(name, after, ScanPart(part), lanes=[lane])


def _draw_planned(
    drawing: Drawing, stem: str, dot: str, lane: str, plan: PlanPart, after: Front
) -> Front:
    planned = drawing.job(f"{stem}{dot}plan", after, plan, lanes=[lane])
    approved = drawing.gate(f"{stem}{dot}approve", planned)
    apply = ApplyPart(plan.part, planned[0], plan.destroy)
    return drawing.job(f"{stem}{dot}apply", approved, apply, lanes=[lane], mutating=True)
