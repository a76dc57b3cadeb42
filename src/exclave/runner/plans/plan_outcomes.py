"""The outcome of a job that planned: succeeded, or denied by policies."""

from collections.abc import Sequence

from exclave.runner.outcomes import fail
from exclave.runner.plans.drift_findings import list_findings
from exclave.wire.jobs import JsonValue, OutcomeState, Reason
from exclave.wire.plans import PlanDocument, PolicyFinding
from exclave.wire.runner import Outcome


def end_plan(
    document: PlanDocument, outputs: dict[str, JsonValue], *, reports_drift: bool = False
) -> Outcome:
    """Return the outcome of a plan that was handed in; a denial of a policy fails it."""
    if reports_drift:
        outputs = {**outputs, "drift": list_findings(document)}
    outputs = {
        **outputs,
        "summary": document.summary.model_dump(by_alias=True),
        "policies": {"warn": _list_warnings(document.policies)},
    }
    denied = [finding for finding in document.policies if finding.level == "deny"]
    if denied:
        message = "\n".join(
            f"policy `{finding.name}` denies {finding.resource or 'this plan'}: {finding.message}"
            for finding in denied
        )
        return fail(Reason.POLICY_DENIED, message).model_copy(update={"outputs": outputs})
    return Outcome(
        state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, exit_code=0, outputs=outputs
    )


def _list_warnings(findings: Sequence[PolicyFinding]) -> list[JsonValue]:
    return [
        f"{finding.name}: {f'{finding.resource}: ' if finding.resource else ''}{finding.message}"
        for finding in findings
        if finding.level == "warn"
    ]
