"""Drawing of a workflow as a tree of steps with states and durations."""

from collections.abc import Callable, Sequence
from datetime import datetime

from exclave.cli.output import show_duration, show_time
from exclave.cli.terminal import Styled, clean_line, indent, join
from exclave.wire.jobs import JobState
from exclave.wire.workflows import StepKind, StepReply, StepState, WorkflowReply

Paint = Callable[[str, str], Styled]
"""Takes a state and a text, and colours the text."""

ICONS = {
    StepState.PENDING: "○",
    StepState.ACTIVE: "●",
    StepState.SUCCEEDED: "✓",
    StepState.FAILED: "✗",
    StepState.LOST: "?",
    StepState.SKIPPED: "↷",
    StepState.CANCELLED: "⊘",
}


def draw_graph(workflow: WorkflowReply, now: datetime, paint: Paint) -> list[Styled]:
    """Return the lines of the tree: each step once, below the last step it needs.

    Steps that can run side by side branch off; a single follower (`↓`) keeps the indentation, so
    that a long chain stays readable.
    """
    children = _place_steps(workflow.steps)
    lines: list[Styled] = []
    todo = [(step, "", "") for step in reversed(children.get("", []))]
    while todo:
        step, branch, margin = todo.pop()
        lines.append(branch + indent(draw_step(step, now, paint), f"{margin}      "))
        below = children.get(step.name, [])
        todo += [(child, *_choose_branch(child, below, margin)) for child in reversed(below)]
    return lines


def draw_step(step: StepReply, now: datetime, paint: Paint) -> Styled:
    """Return the line of one step."""
    facts = [
        describe_state(step),
        step.message if step.state is StepState.SUCCEEDED else "",
        _show_elapsed(step, now),
        f"try {step.attempt}" if step.attempt > 1 else "",
        f"also needs {', '.join(step.needs[:-1])}" if len(step.needs) > 1 else "",
    ]
    text = " · ".join(fact for fact in facts if fact)
    icon = paint(step.state, ICONS[step.state])
    return join([icon, " ", clean_line(step.name), "  ", paint(step.state, text)], "")


def describe_state(step: StepReply) -> str:
    """Return the state of a step in words."""
    match step.state:
        case StepState.ACTIVE:
            return _describe_active(step)
        case StepState.PENDING if step.blocked_by is not None:
            return f"pending: {step.blocked_by.message}"
        case _:
            why = [text for text in dict.fromkeys((step.reason, step.message)) if text]
            shown = step.state is not StepState.SUCCEEDED and why
            return f"{step.state}: {': '.join(why)}" if shown else str(step.state)


def count_steps(workflow: WorkflowReply) -> str:
    """Return the progress of a workflow in words."""
    over = sum(step.state.is_over for step in workflow.steps)
    return f"{over} of {len(workflow.steps)} steps done"


def _describe_active(step: StepReply) -> str:
    waits = step.waiting_for
    match step.kind:
        case StepKind.JOB:
            if step.blocked_by is not None:
                return f"queued: {step.blocked_by.message}"
            if step.job_state is JobState.QUEUED and waits:
                return f"queued, waits for {waits}"
            return str(step.job_state or step.state)
        case StepKind.GATE:
            return "waits for approval"
        case StepKind.WAIT:
            return "waits for an event"
        case StepKind.TIMER:
            return f"waits until {show_time(step.due_at)}"


def _show_elapsed(step: StepReply, now: datetime) -> str:
    if step.started_at is None or (step.finished_at is None and step.state.is_over):
        return ""
    return show_duration(((step.finished_at or now) - step.started_at).total_seconds())


def _choose_branch(child: StepReply, siblings: Sequence[StepReply], margin: str) -> tuple[str, str]:
    if len(siblings) == 1:
        return f"{margin}↓ ", margin
    if child is siblings[-1]:
        return f"{margin}└─ ", f"{margin}   "
    return f"{margin}├─ ", f"{margin}│  "


def _place_steps(steps: Sequence[StepReply]) -> dict[str, list[StepReply]]:
    names = {step.name for step in steps}
    placed: dict[str, list[StepReply]] = {}
    for step in steps:
        needs = [need for need in step.needs if need in names]
        placed.setdefault(needs[-1] if needs else "", []).append(step)
    return placed
