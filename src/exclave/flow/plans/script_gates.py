"""Two people for an install's workflow: no automatic approval, and a gate before its scripts."""

from collections.abc import Sequence
from dataclasses import replace

from exclave.domain.workflows import StepKind
from exclave.flow.plans.drafts import Draft
from exclave.flow.plans.intents import ApplyPart
from exclave.flow.plans.outline import Outline

SCRIPTS_GATE = "scripts-approve"


def ask_for_every_plan(outline: Outline) -> Outline:
    """Take automatic approval out of an outline."""
    components = tuple(replace(each, auto_approve=False) for each in outline.components)
    return replace(outline, components=components, sandbox_auto_approve=False)


def put_gate_before_scripts(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Let every step that runs a script wait for one more gate, which opens at once.

    The gate of a plan before it is not enough: a plan without changes passes its gate by itself.
    Steps that wait for the outside world or only plan do not wait for this gate.
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
