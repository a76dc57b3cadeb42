"""Builds: the artifact of a part of a config version, and how far it is."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId
from exclave.domain.jobs import JobId
from exclave.domain.workflows import WorkflowId


class BuildState(StrEnum):
    """Where a build stands; the artifact of a collected one is gone: nothing pinned it."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    COLLECTED = "collected"


def may_be_reused(state: BuildState) -> bool:
    """Return whether a config can pin a build in this state instead of building again."""
    return state in {BuildState.RUNNING, BuildState.SUCCEEDED}


@dataclass(frozen=True, slots=True)
class Build:
    """A build of a part of an app."""

    org_id: OrgId
    id: str
    app_id: str
    part: str
    key: str
    """Builds of an app with equal keys have equal artifacts."""
    state: BuildState
    source: JsonObject
    """Where the files come from, as `wire.specs.BuildSource` writes it."""
    workflow_id: WorkflowId | None
    job_id: JobId | None
    repository: str
    digest: str
    """Of the artifact; empty as long as there is none."""
    commit: str
    size: int
    provenance: str
    error: str
    created_at: datetime
    created_by: str
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class ListedBuild(Build):
    """A build with the name of its app."""

    app: str


@dataclass(frozen=True, slots=True)
class PinnedBuild(Build):
    """A build and the part that a config version pins it for."""

    pin: str


@dataclass(frozen=True, slots=True)
class NewBuild:
    """A build that is about to begin."""

    id: str
    app_id: str
    part: str
    key: str
    source: JsonObject
    repository: str
    workflow_id: WorkflowId
    created_by: str


@dataclass(frozen=True, slots=True)
class BuildArtifact:
    """What a build that has succeeded left in the registry."""

    digest: str
    commit: str
    size: int
    provenance: str


@dataclass(frozen=True, slots=True)
class BuildFailure:
    """Why a build has no artifact."""

    error: str


BuildEnd = BuildArtifact | BuildFailure
"""How a build ended."""


def name_action_source(action: str, step: str) -> str:
    """Return the name under which the source of an action's step is built."""
    return f"action:{action}:{step}"
