"""Builds over the Control API."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from exclave.domain.builds import BuildState as BuildState
from exclave.wire.model import Id, Reply, Request
from exclave.wire.plans import PolicyFinding
from exclave.wire.specs import BuildSource

SBOM_TYPE = "application/spdx+json"
"""The type of the referrers that list what an artifact contains."""
_OWNER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+")

Commit = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
Part = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class NewBuild(Request):
    """Build a part of an app's current config again, at its ref's newest commit or a given one."""

    app: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    part: Part
    commit: Commit | None = None


class BuildReply(Reply):
    """A build: its source, its artifact if it succeeded, its error if it failed."""

    id: Id
    app_id: Id
    app: str
    part: str
    state: BuildState
    source: BuildSource
    repository: str
    digest: str = ""
    commit: str = ""
    size: int = 0
    provenance: str = ""
    error: str = ""
    policies: Annotated[
        list[PolicyFinding],
        Field(description="What policies say about a built image; only of a single build."),
    ] = []
    workflow_id: Id | None = None
    job_id: Id | None = None
    configs: Annotated[list[int], Field(description="Config versions that pin this build.")] = []
    created_at: datetime
    created_by: str
    finished_at: datetime | None = None


def expand_repo(repo: str) -> str:
    """Return the URL for `owner/name`; other forms are returned unchanged."""
    return f"https://github.com/{repo}" if _OWNER_NAME.fullmatch(repo) else repo
