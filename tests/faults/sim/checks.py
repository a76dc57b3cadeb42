"""What must hold when a simulation has come to rest (I3, I7, I8, I10, I12)."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import select

from exclave.control.logs.pieces import unpack_stored
from exclave.runner.audit import verify_audit
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.tables.work import executions, jobs, lanes, log_segments, steps, workflows
from tests.faults.sim.control import SimControl
from tests.faults.sim.ledger import Cloud, Ledger

_FINAL = frozenset({"succeeded", "failed", "cancelled", "lost"})


def check_rest(control: SimControl, cloud: Cloud, ledger: Ledger) -> None:
    """Check that everything ended, and ended rightly."""
    control.read(lambda tx: _check_jobs(tx, cloud, ledger))
    control.read(lambda tx: _check_lanes(tx, ledger))
    control.read(lambda tx: _check_approvals(tx, cloud, ledger))


def check_audits(folders: Sequence[Path], cloud: Cloud, ledger: Ledger) -> None:
    """Check that whatever ran had a verified envelope, and that each machine's record holds."""
    accepted: set[str] = set()
    started: set[str] = set()
    for folder in folders:
        file = folder / "audit.jsonl"
        if not file.exists():
            continue
        told = verify_audit(file)
        if not told.ok:
            ledger.report("I10", "the audit chain is broken", folder.name, told.problem)
        for line in file.read_bytes().splitlines():
            entry = json.loads(line)
            if entry["event"] == "envelope_accepted":
                accepted.add(entry["facts"]["execution_id"])
            elif entry["event"] == "job_started":
                started.add(entry["facts"]["execution_id"])
    for execution in cloud.digests:
        if execution not in accepted or execution not in started:
            ledger.report("I10", "an effect without envelope or audit entry", execution)


def check_results(control: SimControl, kept: Sequence[str], ledger: Ledger) -> None:
    """Check that each result that a runner kept arrived, and counts once."""
    rows = {row.id: row for row in control.read(lambda tx: tx.all(select(executions)))}
    for name in kept:
        row = rows[name]
        if row.result_digest is None and row.late_result is None:
            ledger.report("I6", "a kept result never arrived", name)
    for row in rows.values():
        if row.result_digest is not None and row.late_result is not None:
            ledger.report("I6", "a result was recorded and refused", row.id)


async def check_logs(control: SimControl, written: Mapping[str, bytearray], ledger: Ledger) -> None:
    """Check that each stored log is a prefix of what was written, and whole if it says so."""
    for row in control.read(lambda tx: tx.all(select(executions))):
        stored = await _read_stream(control, row.id, ledger)
        whole = bytes(written.get(row.id, b""))
        if len(stored) != row.log_bytes or not whole.startswith(stored):
            ledger.report("I8", "stored log is not a prefix", row.id, len(stored), row.log_bytes)
            continue
        numbers = [json.loads(line)[0] for line in stored.splitlines()]
        if numbers != list(range(len(numbers))):
            ledger.report("I8", "records are not numbered in order", row.id)
        _check_end(row, stored, whole, ledger)


def _check_end(row: AnyRow, stored: bytes, whole: bytes, ledger: Ledger) -> None:
    if row.log_end is None or row.log_bytes < row.log_end:
        ledger.counts["logs_incomplete"] += 1
        return
    ledger.counts["logs_complete"] += 1
    if stored != whole[: row.log_end] or len(stored) != row.log_end:
        ledger.report("I8", "a complete log is not whole", row.id, row.log_end, len(whole))
    if row.log_sha256 and hashlib.sha256(stored).hexdigest() != row.log_sha256:
        ledger.report("I8", "digest of a complete log is wrong", row.id)


async def _read_stream(control: SimControl, execution: str, ledger: Ledger) -> bytes:
    found = select(log_segments).where(log_segments.c.execution_id == execution)
    stored = b""
    for row in control.read(lambda tx: tx.all(found.order_by(log_segments.c.start))):
        if row.start != len(stored):
            ledger.report("I8", "gap or overlap between segments", execution, row.start)
        stored += unpack_stored(await control.blobs.get(row.blob), row.end - row.start)
    return stored


def _check_jobs(tx: Tx, cloud: Cloud, ledger: Ledger) -> None:
    rows = tx.all(select(executions))
    for job in tx.all(select(jobs)):
        ledger.counts["jobs"] += 1
        if job.state not in _FINAL:
            ledger.report("I7", "job never ended", job.id, job.state)
        mine = [row for row in rows if row.job_id == job.id]
        if any(row.state != "ended" for row in mine):
            ledger.report("I7", "execution never ended", job.id)
        if job.state == "succeeded" and not any(row.id in cloud.finished for row in mine):
            ledger.report("I3", "succeeded without all its steps", job.id)
    for workflow in tx.all(select(workflows)):
        ledger.counts["workflows"] += 1
        if workflow.state == "running":
            ledger.report("I7", "workflow never settled", workflow.id)


def _check_approvals(tx: Tx, cloud: Cloud, ledger: Ledger) -> None:
    """Check that what was behind a gate ran with a digest that a person had approved."""
    gated = {row.workflow_id for row in tx.all(select(steps).where(steps.c.kind == "gate"))}
    applied = {
        row.job_id: row.workflow_id
        for row in tx.all(select(steps))
        if row.workflow_id in gated and row.name.startswith("apply")
    }
    for row in tx.all(select(executions)):
        if row.job_id in applied and row.id in cloud.digests:
            ledger.counts["gated"] += 1
            if cloud.digests[row.id] not in cloud.approved.get(applied[row.job_id], ()):
                ledger.report("I12", "applied without approval of this very digest", row.id)


def _check_lanes(tx: Tx, ledger: Ledger) -> None:
    for lane in tx.all(select(lanes)):
        if lane.state != "free":
            ledger.report("I7", "lane is not free", lane.queue_id, lane.name, lane.state)
