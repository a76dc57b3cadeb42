"""Drawing a step graph: named steps, each after a front of others."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from exclave.domain.lanes import SANDBOX
from exclave.domain.workflows import StepKind

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
    intent: Mapping[str, Any] = field(default_factory=dict)


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
        intent: Mapping[str, Any],
        *,
        lanes: Sequence[str] = (),
        mutating: bool = False,
    ) -> Front:
        """Add a step that a runner does."""
        kind = StepKind.JOB
        return self._add(Draft(name, kind, after, tuple(lanes), mutating, intent))

    def wait(self, name: str, after: Front, intent: Mapping[str, Any]) -> Front:
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
        kept = Draft(name, draft.kind, draft.needs, draft.lanes, draft.mutating, draft.intent)
        self.drafts.append(kept)
        return (name,)


def draw_sandbox(
    drawing: Drawing, after: Front, *, destroy: bool = False, auto: bool = False
) -> Front:
    """Plan the sandbox, ask, apply exactly that plan."""
    stem = "sandbox-destroy" if destroy else "sandbox"
    about = {"part": "sandbox", "destroy": destroy}
    return _draw_planned(drawing, stem, "-", SANDBOX, about, after, auto=auto)


def draw_component(
    drawing: Drawing, name: str, after: Front, *, destroy: bool = False, auto: bool = False
) -> Front:
    """Plan a component, ask, apply exactly that plan."""
    about = {"part": f"component:{name}", "component": name, "destroy": destroy}
    stem = f"{slug(name)}.destroy" if destroy else slug(name)
    return _draw_planned(
        drawing, stem, "-" if destroy else ".", component_lane(name), about, after, auto=auto
    )


def draw_plan(drawing: Drawing, part: str, after: Front) -> Front:
    """Plan a part, and nothing else."""
    name = part.removeprefix("component:")
    stem = "sandbox-plan" if part == SANDBOX else f"{slug(name)}.plan"
    lane = SANDBOX if part == SANDBOX else component_lane(name)
    intent = {"do": "plan", "part": part, "component": name if part != SANDBOX else ""}
    return drawing.job(stem, after, {**intent, "destroy": False, "scan": True}, lanes=[lane])


def _draw_planned(
    drawing: Drawing,
    stem: str,
    dot: str,
    lane: str,
    about: Mapping[str, Any],
    after: Front,
    *,
    auto: bool,
) -> Front:
    planned = drawing.job(
        f"{stem}{dot}plan", after, {"do": "plan", "auto": auto, **about}, lanes=[lane]
    )
    approved = drawing.gate(f"{stem}{dot}approve", planned)
    intent = {"do": "apply", "plan": planned[0], **about}
    return drawing.job(f"{stem}{dot}apply", approved, intent, lanes=[lane], mutating=True)
