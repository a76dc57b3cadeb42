"""Clocks, dispatches and log readers for tests of executors."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from exclave.base.clock import SystemClock
from exclave.base.ids import Ids, SystemRandomness
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.executors.script import ScriptExecutor
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import JobRun, StopRequest
from exclave.runner.logs.job_log import JobLog, open_log
from exclave.runner.logs.spool import Spool
from exclave.runner.secrets.store import FileSecrets
from exclave.wire.logs import LogRecord, Stream, read_records
from exclave.wire.runner import Dispatch, Outcome
from exclave.wire.specs import JobSpec, ScriptSpec

CLOCK = SystemClock()
EXECUTION = Ids(CLOCK, SystemRandomness()).new("exe")
"""Of this test process alone: processes are found and killed by it."""

NO_UPLINK = cast("Uplink", None)
"""For work that never asks the control plane for anything."""


class ManualClock:
    """A clock that moves only by `sleep` and `advance`."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)


def make_dispatch(spec: JobSpec, **changes: Any) -> Dispatch:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    ids = {
        name: f"{name[:3]}_" + "0" * 26 for name in ("org_id", "queue_id", "runner_id", "job_id")
    }
    facts: dict[str, Any] = {
        **ids,
        "execution_id": EXECUTION,
        "epoch": 1,
        "sequence": 1,
        "nonce": "n" * 20,
        "issued_at": now,
        "expires_at": now,
        "mutating": False,
        "lanes": [],
        "spec": spec,
    }
    return Dispatch(**{**facts, **changes})


class ExecutionHarness:
    """One execution in a folder of its own, with its log."""

    def __init__(self, folder: Path, secrets: dict[str, str] | None = None) -> None:
        self.folder = folder / EXECUTION
        self.folder.mkdir()
        self.log, self.spool = open_log(self.folder / "log", CLOCK)
        self.stop = StopRequest()
        self.secrets_file = folder / "secrets.json"
        self.secrets_file.write_text(json.dumps(secrets or {}))
        self.secrets_file.chmod(0o600)

    async def run(self, spec: ScriptSpec, *, grace_s: float = 0.5, **changes: Any) -> Outcome:
        executor = ScriptExecutor(
            ChildSettings(),
            FileSecrets(self.secrets_file),
            CLOCK,
            timeout_grace_s=grace_s,
            keep_free_bytes=0,
        )
        return await executor.run(
            JobRun(make_dispatch(spec, **changes), self.folder, NO_UPLINK), self.log, self.stop
        )

    def texts(self, stream: Stream = Stream.STDOUT) -> list[str]:
        return [one.text for one in read_spool(self.spool) if one.stream is stream]

    def read_log(self) -> str:
        return "\n".join(one.text for one in read_spool(self.spool))


def script(text: str, **more: Any) -> ScriptSpec:
    """Return a job with one shell script."""
    return ScriptSpec.model_validate({"steps": [{"name": "main", "script": text}], **more})


def read_stream(spool: Spool, most: int = 1 << 20) -> bytes:
    data, at = b"", spool.start
    while piece := spool.read(at, most):
        data += piece
        at += len(piece)
    return data


def read_spool(spool: Spool) -> list[LogRecord]:
    records = list(read_records(EXECUTION, read_stream(spool), spool.start))
    first = records[0].n if records else 0
    assert [one.n for one in records] == list(range(first, first + len(records)))
    return records


def close_and_check(log: JobLog, spool: Spool) -> list[LogRecord]:
    """Close a log and check that its length and digest match its content."""
    end, digest = log.close()
    stream = read_stream(spool)
    assert end == len(stream)
    assert digest == hashlib.sha256(stream).hexdigest()
    return read_spool(spool)


def join(records: list[LogRecord], stream: Stream) -> str:
    """Put lines together again."""
    return "".join(
        one.text + ("" if one.partial else "\n") for one in records if one.stream is stream
    )
