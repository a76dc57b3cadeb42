"""What must hold after a scenario, whatever the order of its statements was."""

from collections.abc import Mapping
from typing import Any, cast

from exclave.base.errors import Problem
from exclave.domain.uploads import Upload
from exclave.storage.blobs.memory import MemoryBlobs
from exclave.wire.runner import RenewReply, ResultReply
from exclave.wire.workflows import WorkflowReply
from tests.faults.interleaving.two_servers import Scenario

_ALWAYS = {
    "a final state changed": "SELECT said FROM watched.violations",
    "a mutating job was started twice": """
        SELECT job_id FROM executions WHERE queue_id = %(queue)s AND mutating
        AND started_at IS NOT NULL GROUP BY job_id HAVING count(*) > 1""",
    "a job is held by two executions": """
        SELECT job_id FROM executions WHERE queue_id = %(queue)s AND state <> 'ended'
        GROUP BY job_id HAVING count(*) > 1""",
    "job and execution do not fit": """
        SELECT jobs.id || ' ' || jobs.state || ' ' || coalesce(executions.state, 'none')
        FROM jobs LEFT JOIN executions ON executions.job_id = jobs.id AND executions.state <> 'ended'
        WHERE jobs.queue_id = %(queue)s AND CASE jobs.state
          WHEN 'offered' THEN coalesce(executions.state, '') <> 'offered'
          WHEN 'running' THEN coalesce(executions.state, '') <> 'running'
          WHEN 'queued' THEN executions.id IS NOT NULL
          ELSE executions.state = 'running' END""",
    "a job that is to be cancelled waits for a runner": """
        SELECT id FROM jobs WHERE queue_id = %(queue)s AND state = 'queued'
        AND cancel_requested_at IS NOT NULL""",
    "a started change waits for a runner": """
        SELECT jobs.id FROM jobs JOIN executions ON executions.job_id = jobs.id
        WHERE jobs.queue_id = %(queue)s AND jobs.mutating AND jobs.state IN ('queued', 'offered')
        AND executions.started_at IS NOT NULL""",
    "a lane is not held by its execution": """
        SELECT lanes.name FROM lanes LEFT JOIN executions ON executions.id = lanes.execution_id
        AND executions.state <> 'ended'
        WHERE lanes.queue_id = %(queue)s AND lanes.state = 'busy' AND executions.id IS NULL""",
    "an execution does not hold its lane": """
        SELECT held.execution_id || ' ' || held.lane FROM execution_lanes held
        JOIN executions ON executions.id = held.execution_id AND executions.state <> 'ended'
        LEFT JOIN lanes ON lanes.queue_id = held.queue_id AND lanes.name = held.lane
        AND lanes.execution_id = held.execution_id AND lanes.epoch = held.epoch
        AND lanes.state = 'busy'
        WHERE held.queue_id = %(queue)s AND lanes.name IS NULL""",
    "lanes that exclude each other are busy": """
        SELECT one.name || ' ' || other.name FROM lanes one
        JOIN lanes other ON other.queue_id = one.queue_id AND other.name > one.name
        WHERE one.queue_id = %(queue)s AND one.state = 'busy' AND other.state = 'busy'
        AND (one.name = 'sandbox' OR other.name = 'sandbox')
        AND one.execution_id <> other.execution_id""",
    "a step has two jobs": """
        SELECT workflow_id || ' ' || step FROM jobs WHERE queue_id = %(queue)s
        GROUP BY workflow_id, step, step_attempt HAVING count(*) > 1""",
    "an active step has no open job": """
        SELECT steps.name || ' ' || jobs.state FROM steps
        JOIN workflows ON workflows.id = steps.workflow_id
        JOIN jobs ON jobs.id = steps.job_id
        WHERE workflows.queue_id = %(queue)s AND steps.state = 'active'
        AND jobs.state NOT IN ('queued', 'offered', 'running')""",
    "a started change was withdrawn": """
        SELECT executions.id FROM executions JOIN jobs ON jobs.id = executions.job_id
        WHERE executions.queue_id = %(queue)s AND executions.mutating
        AND executions.started_at IS NOT NULL AND executions.reason = 'runner_stopped_it'
        AND jobs.state <> 'lost'""",
    "a tick was taken twice": """
        SELECT queue_id FROM workflows WHERE queue_id = %(queue)s AND created_by = 'schedule'
        GROUP BY queue_id HAVING count(*) > 1""",
    "a tick was not taken": """
        SELECT id FROM schedules WHERE install_id = %(queue)s AND last_workflow_id IS NULL""",
    "a workflow waits for builds that have ended": """
        SELECT steps.workflow_id FROM steps
        JOIN workflows ON workflows.id = steps.workflow_id
        WHERE workflows.queue_id = %(queue)s AND steps.name = 'builds' AND steps.state = 'active'
        AND NOT EXISTS (
          SELECT FROM config_builds JOIN builds ON builds.id = config_builds.build_id
          WHERE config_builds.config_id = steps.spec #>> '{intent,config}'
          AND builds.finished_at IS NULL)""",
    "two signing keys follow the same one": """
        SELECT signed_by FROM signing_keys GROUP BY signed_by HAVING count(*) > 1""",
    "an epoch was given twice": """
        SELECT epoch::text FROM executions WHERE queue_id = %(queue)s
        GROUP BY epoch HAVING count(*) > 1""",
}
_IN_THE_END = {
    "an ended job is still offered": """
        SELECT jobs.id FROM jobs JOIN executions ON executions.job_id = jobs.id
        WHERE jobs.queue_id = %(queue)s AND executions.state = 'offered'
        AND jobs.state NOT IN ('queued', 'offered', 'running')""",
}
_EXECUTION = "SELECT state, reason, result_digest IS NOT NULL FROM executions WHERE id = %s"


def check_rows(scenario: Scenario, *, settled: bool = False) -> list[str]:
    """Look for rows that contradict each other."""
    queries = {**_ALWAYS, **_IN_THE_END} if settled else _ALWAYS
    asked = {"queue": scenario.queue}
    return [
        f"{what}: {row[0]}"
        for what, query in queries.items()
        for row in scenario.pair.database.execute(query, asked if "%(" in query else None)
    ]


def check_replies(scenario: Scenario, outcomes: Mapping[str, Any]) -> list[str]:
    """Look for replies that are not true: what somebody was told must have happened."""
    broken = [
        f"{name} failed: {outcome!r}"
        for name, outcome in outcomes.items()
        if isinstance(outcome, Problem) and outcome.code in {"unavailable", "bug"}
    ]
    for outcome in outcomes.values():
        if isinstance(outcome, RenewReply):
            broken += _check_renewal(scenario, outcome)
    if isinstance(outcomes.get("result"), ResultReply) and scenario.handed_in:
        state, _, has_result = _read(scenario, scenario.handed_in)
        if (state, has_result) != ("ended", True):
            broken.append(f"{scenario.handed_in} lost its result")
    won = [name for name in ("approve", "deny") if isinstance(outcomes.get(name), WorkflowReply)]
    if len(won) > 1:
        broken.append("a gate was approved and denied")
    if "again" in outcomes and type(outcomes["again"]) is not type(outcomes["result"]):
        broken.append("the same result was accepted and refused")
    raised = [outcome for name, outcome in outcomes.items() if name.startswith("raise")]
    if len(set(raised)) < len(raised):
        broken.append("two servers changed the same version of an install")
    released = [
        name
        for name, outcome in outcomes.items()
        if name.startswith("release") and not isinstance(outcome, Problem)
    ]
    if len(released) > 1:
        broken.append("a lane was released twice")
    return broken


def check_uploads(scenario: Scenario, outcomes: Mapping[str, Any]) -> list[str]:
    """Look for uploads whose pieces are gone, and for one that was ended while it grew."""
    blobs = cast("MemoryBlobs", scenario.one.blobs)
    rows = scenario.pair.database.execute("SELECT id, parts FROM oci_uploads").fetchall()
    grown = outcomes.get("append")
    if isinstance(grown, Upload) and "cancel" not in outcomes and not rows:
        return [f"upload {grown.id} grew and was collected"]
    return [
        f"upload {upload} lost a piece"
        for upload, parts in rows
        for part in parts
        if part["key"] not in blobs._blobs
    ]


def _check_renewal(scenario: Scenario, reply: RenewReply) -> list[str]:
    alive = [name for name, verdict in reply.verdicts.items() if verdict == "ok"]
    return [
        f"{name} was renewed and given up"
        for name in alive
        if _read(scenario, name)[:2] == ("ended", "runner_silent")
    ]


def _read(scenario: Scenario, execution: str) -> tuple[Any, ...]:
    row = scenario.pair.database.execute(_EXECUTION, (execution,)).fetchone()
    assert row is not None
    return row
