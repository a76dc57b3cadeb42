"""What becomes of a finding when a scan reports it, and when its part has drifted."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from exclave.domain.drift_findings import (
    DriftFinding,
    FindingState,
    ReportedFinding,
    decide_found,
    decide_part_drift,
)
from exclave.domain.installs import Drift

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FOUND = ReportedFinding("apps/Deployment/ns/web", "spec.replicas", "update", "5 → 2", "a" * 64)
KNOWN = DriftFinding(
    "drf_1", "component:web", FOUND.fingerprint, *FOUND, FindingState.NEW, NOW, NOW, NOW, "", ""
)


@pytest.mark.parametrize(
    ("state", "same", "changed"),
    [
        (FindingState.NEW, FindingState.SEEN, FindingState.NEW),
        (FindingState.SEEN, FindingState.SEEN, FindingState.NEW),
        (FindingState.ACCEPTED, FindingState.ACCEPTED, FindingState.NEW),
        (FindingState.GONE, FindingState.NEW, FindingState.NEW),
    ],
)
def test_a_finding_is_new_again_if_its_content_changed_or_it_was_gone(
    state: FindingState, same: FindingState, changed: FindingState
) -> None:
    known = replace(KNOWN, state=state)

    assert decide_found(known, known.content) is same
    assert decide_found(known, "b" * 64) is changed


def test_a_finding_that_nobody_knows_is_new() -> None:
    assert decide_found(None, FOUND.content) is FindingState.NEW


def test_the_same_field_with_another_value_is_the_same_finding() -> None:
    assert FOUND._replace(content="b" * 64, detail="6 → 2").fingerprint == FOUND.fingerprint
    assert FOUND._replace(path="spec.paused").fingerprint != FOUND.fingerprint
    assert FOUND._replace(change="replace").fingerprint != FOUND.fingerprint


@pytest.mark.parametrize(
    ("noop", "states", "is_complete", "drift"),
    [
        (True, [], True, Drift.NONE),
        (False, [], False, Drift.DRIFTED),
        (False, [FindingState.ACCEPTED], True, Drift.NONE),
        (False, [FindingState.ACCEPTED], False, Drift.DRIFTED),
        (False, [FindingState.ACCEPTED, FindingState.SEEN], True, Drift.DRIFTED),
    ],
)
def test_a_part_has_drifted_unless_everything_was_accepted(
    noop: bool, states: list[FindingState], is_complete: bool, drift: Drift
) -> None:
    assert decide_part_drift(noop=noop, states=states, is_complete=is_complete) is drift
