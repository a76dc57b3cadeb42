"""Sensitive inputs: handed to a running execution, and only those that its job names."""

import json
import re

from exclave.base.errors import NotFound
from exclave.control.deps import Deps
from exclave.control.install_values import read_sensitive
from exclave.domain.identity import RunnerIdentity
from exclave.domain.jobs import ExecutionId, ExecutionState, Superseded
from exclave.storage import executions, jobs
from exclave.storage.database import Tx
from exclave.wire.terraform import SensitiveValues

_NAMED = re.compile(r"\(\(exclave:input:([^()]{1,200})\)\)")


async def get_sensitive(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, epoch: int
) -> SensitiveValues:
    """Unseal the inputs whose placeholders stand in the specification of the execution's job."""

    def find(tx: Tx) -> dict[str, str]:
        row = executions.find_execution(tx, who.org, execution)
        if row is None or row.runner_id != who.runner:
            raise NotFound("there is no such execution")
        if row.epoch != epoch or row.state != ExecutionState.RUNNING:
            raise Superseded(f"execution {execution} is not running")
        job = jobs.find_job(tx, who.org, row.job_id)
        named = set(_NAMED.findall(json.dumps(job.spec))) if job is not None else set()
        return read_sensitive(tx, deps, who.org, who.queue, named) if named else {}

    return SensitiveValues(values=await deps.db.read(find))
