"""Store the result of a build job, and advance the workflows that waited for it."""

import re
from typing import Any

from exclave.base.json_values import JsonObject
from exclave.control.deps import Deps
from exclave.control.install_state.reported_outputs import read_count, read_word
from exclave.control.progress.advance import WorkflowEvent, advance
from exclave.control.progress.build_waits import end_build
from exclave.domain.builds import BuildState
from exclave.domain.identity import OrgId
from exclave.domain.jobs import EndedJob, JobState
from exclave.flow.events import Answered
from exclave.storage import apps, builds
from exclave.storage.engine.database import AnyRow, Tx

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def apply_build_result(
    tx: Tx, deps: Deps, job: EndedJob, state: JobState, outputs: JsonObject, message: str
) -> None:
    """Store the result of a build job, and advance the workflows that waited for it."""
    org, build = OrgId(job.org_id), str(job.spec["build_id"])
    row = builds.find_build(tx, org, build, lock=True)
    if row is None:
        return
    ended = {"job_id": job.id, **_read_result(state, outputs, message)}
    waits = end_build(tx, org, build, ended)
    if state is JobState.SUCCEEDED:
        _pin_newest(tx, org, row)
    advance(
        tx,
        deps,
        [
            WorkflowEvent(org, wait.workflow, Answered(wait.position, wait.attempt))
            for wait in waits
        ],
    )


def _read_result(state: JobState, outputs: JsonObject, message: str) -> dict[str, Any]:
    digest = str(outputs.get("digest", ""))
    if state is JobState.SUCCEEDED and _DIGEST.fullmatch(digest):
        return {
            "state": BuildState.SUCCEEDED,
            "digest": digest,
            "error": "",
            "commit": read_word(outputs, "commit"),
            "size": read_count(outputs, "size"),
            "provenance": read_word(outputs, "provenance"),
        }
    missing = "the build runner named no artifact" if state is JobState.SUCCEEDED else ""
    return {"state": BuildState.FAILED, "error": missing or message or str(state)}


def _pin_newest(tx: Tx, org: OrgId, row: AnyRow) -> None:
    """Pin a build to the app's current config, if it was requested after the pinned one."""
    app = apps.find_app(tx, org, row.app_id)
    if app is None or app.config_id is None:
        return
    pinned = builds.find_pinned(tx, org, app.config_id, row.part)
    if pinned is not None and pinned.key == row.key and pinned.id < row.id:
        builds.pin(tx, org, app.config_id, row.part, row.id)
