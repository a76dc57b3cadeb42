"""Four eyes in a step graph: no automatic approval, and a gate before scripts."""

from collections.abc import Sequence
from dataclasses import replace

from exclave.domain.intents import ApplyPart
from exclave.domain.workflows import StepKind
from exclave.flow.plans.drafts import Draft
from exclave.flow.plans.outline import Outline

SCRIPTS_GATE = "scripts-approve"


def ask_for_every_plan(outline: Outline) -> Outline:
    """Return an outline without automatic approval."""
    components = tuple(replace(component, auto_approve=False) for component in outline.components)
    return replace(outline, components=components, sandbox_auto_approve=False)


def put_gate_before_scripts(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Return steps in which every script waits for one more gate, which opens at once.

    The gate of a plan before it is not enough: a plan without changes passes its gate without a
    person. Waits and steps that only plan do not wait for this gate.
    """
    if not any(_runs_script(draft) for draft in drafts):
        return tuple(drafts)
    gate = Draft(SCRIPTS_GATE, StepKind.GATE, ())
    return (
        gate,
        *(
            replace(draft, needs=(*draft.needs, gate.name)) if _runs_script(draft) else draft
            for draft in drafts
        ),
    )


def _runs_script(draft: Draft) -> bool:
    return draft.mutating and not isinstance(draft.intent, ApplyPart)
