"""Store the result of a build job, and advance the workflows that waited for it."""

import re
from dataclasses import dataclass

from exclave.base.json_values import JsonObject
from exclave.control.deps import Deps
from exclave.control.install_state.reported_outputs import read_count, read_word
from exclave.control.progress.advance import advance
from exclave.control.progress.build_waits import end_build
from exclave.control.progress.workflow_events import WorkflowEvent
from exclave.domain.builds import Build, BuildArtifact, BuildEnd, BuildFailure
from exclave.domain.identity import OrgId
from exclave.domain.jobs import JobId, JobState
from exclave.flow.events import Answered
from exclave.storage import apps, builds
from exclave.storage.engine.database import Tx

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FinishedBuild:
    """A build whose job has just reached its end."""

    org: OrgId
    build: str
    job: JobId
    state: JobState
    outputs: JsonObject
    message: str


def apply_build_result(tx: Tx, deps: Deps, finished: FinishedBuild) -> None:
    """Store the result of a build job, and advance the workflows that waited for it."""
    org = finished.org
    build = builds.find_build(tx, org, finished.build, lock=True)
    if build is None:
        return
    waits = end_build(tx, org, build.id, _read_end(finished), finished.job)
    if finished.state is JobState.SUCCEEDED:
        _pin_newest(tx, org, build)
    advance(
        tx,
        deps,
        [
            WorkflowEvent(org, wait.workflow, Answered(wait.position, wait.attempt))
            for wait in waits
        ],
    )


def _read_end(finished: FinishedBuild) -> BuildEnd:
    state, outputs = finished.state, finished.outputs
    digest = str(outputs.get("digest", ""))
    if state is JobState.SUCCEEDED and _DIGEST.fullmatch(digest):
        return BuildArtifact(
            digest=digest,
            commit=read_word(outputs, "commit"),
            size=read_count(outputs, "size"),
            provenance=read_word(outputs, "provenance"),
        )
    missing = "the build runner named no artifact" if state is JobState.SUCCEEDED else ""
    return BuildFailure(missing or finished.message or str(state))


def _pin_newest(tx: Tx, org: OrgId, build: Build) -> None:
    """Pin a build to the app's current config, if it was requested after the pinned one."""
    app = apps.find_app(tx, org, build.app_id)
    if app is None or app.config_id is None:
        return
    pinned = builds.find_pinned(tx, org, app.config_id, build.part)
    if pinned is not None and pinned.key == build.key and pinned.id < build.id:
        builds.pin(tx, org, app.config_id, build.part, build.id)
