"""Store what a scan for drift found in a part of an install."""

from datetime import timedelta

from exclave.control.deps import Deps
from exclave.domain.drift_findings import (
    MOST_FINDINGS,
    FindingState,
    ScanReport,
    decide_found,
    decide_part_drift,
)
from exclave.domain.identity import OrgId
from exclave.domain.jobs import EndedJob
from exclave.storage import drift_findings, install_parts
from exclave.storage.engine.database import Tx

_REMEMBERED = timedelta(days=90)
"""How long findings that are gone are kept."""


def record_scan(
    tx: Tx, deps: Deps, job: EndedJob, part: str, *, noop: bool, report: ScanReport | None
) -> None:
    """Store the findings of a scan, and whether the part has drifted."""
    org, install = OrgId(job.org_id), job.queue_id
    states = [] if report is None else _record_findings(tx, deps, org, install, part, report)
    is_complete = report is not None and report.is_complete
    drift = decide_part_drift(noop=noop, states=states, is_complete=is_complete)
    install_parts.save_drift(tx, org, install, part, drift)
    tx.wake(f"install:{install}")


def decide_again(tx: Tx, org: OrgId, install: str, part: str) -> None:
    """Store whether a part has drifted after a person has accepted or reopened a finding."""
    states = [
        entry.state
        for entry in drift_findings.list_of_part(tx, org, install, part)
        if entry.state is not FindingState.GONE
    ]
    is_complete = len(states) < MOST_FINDINGS
    drift = decide_part_drift(noop=not states, states=states, is_complete=is_complete)
    install_parts.save_drift_state(tx, org, install, part, drift)
    tx.wake(f"install:{install}")


def _record_findings(
    tx: Tx, deps: Deps, org: OrgId, install: str, part: str, report: ScanReport
) -> list[FindingState]:
    """Store findings; return the state of each that is still there."""
    known = {
        entry.fingerprint: entry for entry in drift_findings.list_of_part(tx, org, install, part)
    }
    states = {}
    for reported in report.findings:
        before = known.get(reported.fingerprint)
        state = decide_found(before, reported.content)
        if reported.fingerprint in states:
            continue
        states[reported.fingerprint] = state
        if before is None:
            finding = deps.ids.new("drf")
            drift_findings.add_finding(tx, org, install, part, finding, reported)
        else:
            drift_findings.note_found(tx, org, install, before, reported, state)
    if report.is_complete:
        drift_findings.close_others(tx, org, install, part, [*states])
    drift_findings.drop_gone(tx, org, install, part, tx.now - _REMEMBERED)
    return [*states.values()]
