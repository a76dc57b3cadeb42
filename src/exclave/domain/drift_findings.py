"""Findings of scans for drift: what differs from what was deployed, and what people said to it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from exclave.domain.installs import Drift


class FindingState(StrEnum):
    """What is known about a finding."""

    NEW = "new"
    """The last scan found it for the first time, or with another content."""
    SEEN = "seen"
    """More than one scan found it."""
    ACCEPTED = "accepted"
    """A person accepted this content of it, with a reason."""
    GONE = "gone"
    """The last scan did not find it any more."""


MOST_FINDINGS = 200
"""Of one part; a scan that reports more is not complete."""
OPEN = frozenset({FindingState.NEW, FindingState.SEEN})
"""States of findings that nobody has accepted."""


class ReportedFinding(NamedTuple):
    """A difference that a scan reports."""

    address: str
    path: str
    """The field; empty if it is about the whole resource."""
    change: str
    """What an apply would do about it: `update`, `create` and so on."""
    detail: str
    """The live value and the deployed one, for people."""
    content: str
    """A digest of both values."""

    @property
    def fingerprint(self) -> str:
        """What identifies the finding in all scans of a part."""
        text = f"{self.address}\x00{self.path}\x00{self.change}"
        return hashlib.sha256(text.encode()).hexdigest()


class ScanReport(NamedTuple):
    """All that a scan reports about a part."""

    findings: Sequence[ReportedFinding]
    is_complete: bool
    """Whether nothing was left out because there was too much."""


@dataclass(frozen=True, slots=True)
class DriftFinding:
    """A stored finding."""

    id: str
    part: str
    fingerprint: str
    address: str
    path: str
    change: str
    detail: str
    content: str
    state: FindingState
    first_at: datetime
    last_at: datetime
    """When a scan last found it."""
    changed_at: datetime
    """When its state last changed."""
    by: str
    """Who accepted it; empty if nobody did."""
    reason: str


def decide_found(known: DriftFinding | None, content: str) -> FindingState:
    """Return the state of a finding that a scan reports."""
    if known is None or known.content != content:
        return FindingState.NEW
    match known.state:
        case FindingState.NEW | FindingState.SEEN:
            return FindingState.SEEN
        case FindingState.ACCEPTED:
            return FindingState.ACCEPTED
        case FindingState.GONE:
            return FindingState.NEW


def decide_part_drift(*, noop: bool, states: Sequence[FindingState], is_complete: bool) -> Drift:
    """Return whether a part has drifted; differences that were all accepted are no drift."""
    if noop:
        return Drift.NONE
    settled = bool(states) and is_complete and not OPEN.intersection(states)
    return Drift.NONE if settled else Drift.DRIFTED
