"""Going back to what was deployed before, after a rollout that failed."""

from typing import Final

from exclave.runner.kube.changes.state import PlanMark
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import ClusterJob
from exclave.wire.spec_fields import PlanRef

_FAILED_ROLLOUTS: Final = frozenset(
    {Reason.ROLLOUT_FAILED, Reason.HOOK_FAILED, Reason.TIMEOUT, Reason.OBJECT_REFUSED}
)
"""Failures of what was deployed, not of the cluster, the runner or the plan."""
_SHOWN: Final = 19
"""Characters of a digest that people are shown."""


def make_mark(plan: PlanRef | None) -> PlanMark | None:
    """Return the plan that a job names as a mark."""
    return None if plan is None else PlanMark(plan.execution_id, plan.digest)


def describe_choices(spec: ClusterJob) -> list[str]:
    """Return what the plan says about another cluster and about going back."""
    notes = []
    if spec.adopt:
        notes.append("the part may move to another cluster; what it left in the old one stays")
        notes.append("what its state had lost was looked for in the cluster, by marks")
    if spec.fall_back_to is not None:
        digest = shorten(spec.fall_back_to.digest)
        notes.append(
            f"if the rollout fails, it goes back to the plan {digest}, which is deployed now"
        )
    return notes


def goes_back(failure: WorkFailed, fall_back: PlanMark | None) -> bool:
    """Return whether a failure leads back to what was deployed before."""
    return fall_back is not None and failure.reason in _FAILED_ROLLOUTS


def describe_return(failure: WorkFailed, fall_back: PlanMark, problem: str = "") -> WorkFailed:
    """Return the failure with what became of going back."""
    plan = f"the plan {shorten(fall_back.digest)}, which was deployed before"
    what = f"going back to {plan}, failed too: {problem}" if problem else f"it went back to {plan}"
    return WorkFailed(failure.reason, f"{failure.message}\n{what}")


def shorten(digest: str) -> str:
    """Return a digest for people."""
    return f"{digest[:_SHOWN]}…"
