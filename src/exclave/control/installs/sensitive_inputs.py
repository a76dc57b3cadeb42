"""Sensitive inputs: handed to a running execution, and only those that its job names."""

import json
import re
from collections.abc import Collection, Mapping

from exclave.base.errors import NotFound
from exclave.control.deps import Deps
from exclave.control.installs.input_validation import write_placeholder
from exclave.control.installs.input_versions import read_sensitive
from exclave.domain.identity import RunnerIdentity
from exclave.domain.jobs import ExecutionId, ExecutionState, Job, Superseded
from exclave.storage import executions, jobs, workflows
from exclave.storage.engine.database import Tx
from exclave.wire.terraform import SensitiveValues

_NAMED = re.compile(r"\(\(exclave:input:([^()]{1,200})\)\)")


RUNBOOK = "runbook/"
"""Begins the names of a runbook's own inputs; an input of an app can have no such name."""


def hide_values(values: Mapping[str, str], secret: Collection[str]) -> dict[str, str]:
    """Put placeholders in the place of what was sensitive about the inputs of a runbook."""
    return {
        name: write_placeholder(RUNBOOK + name) if name in secret and text else text
        for name, text in values.items()
    }


def _read_sealed(tx: Tx, deps: Deps, job: Job) -> dict[str, str]:
    workflow = workflows.find_workflow(tx, job.org_id, job.workflow_id)
    sealed = {} if workflow is None else workflow.sealed or {}
    return {RUNBOOK + name: deps.vault.unseal(text) for name, text in sealed.items()}


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
        ours = {name for name in named if not name.startswith(RUNBOOK)}
        values = read_sensitive(tx, deps, who.org, who.queue, ours) if ours else {}
        given = {} if job is None or ours == named else _read_sealed(tx, deps, job)
        return values | {name: given[name] for name in named & given.keys()}

    return SensitiveValues(values=await deps.db.read(find))
