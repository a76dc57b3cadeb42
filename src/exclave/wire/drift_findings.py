"""Findings of scans for drift over the Control API."""

from datetime import datetime
from typing import Annotated

from pydantic import StringConstraints

from exclave.domain.drift_findings import FindingState as FindingState
from exclave.wire.model import Id, Reply, Request, Text

Reason = Annotated[Text, StringConstraints(min_length=3)]


class DriftFindingReply(Reply):
    """A difference between a part and what was deployed of it, as scans reported it."""

    id: Id
    part: str
    address: str
    path: str
    """The field; empty if it is about the whole resource."""
    change: str
    """What an apply would do about it, such as `update`."""
    detail: str
    """The live value and the deployed one; sensitive values are left out."""
    content: str
    """A digest of both values; an acceptance is bound to it."""
    state: FindingState
    first_at: datetime
    last_at: datetime
    """When a scan last found it."""
    changed_at: datetime
    accepted_by: str
    reason: str


class AcceptFinding(Request):
    """Accept a finding as it was looked at."""

    content: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    """The digest of the content that was looked at."""
    reason: Reason


class ReopenFinding(Request):
    """Withdraw an acceptance."""

    reason: Reason
