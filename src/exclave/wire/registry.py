"""The registry in the APIs: short-lived tokens, repositories, tags, garbage collection."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from exclave.wire.model import Id, Reply, Request

_PART = r"[a-z0-9]+([._-]+[a-z0-9]+)*"
RepositoryPattern = Annotated[
    str,
    StringConstraints(pattern=rf"^({_PART}(/{_PART})*(/\*)?|\*)$", min_length=1, max_length=200),
]
"""One repository, `folder/*` for all below a folder, or `*` for all of the org."""


class NewRegistryToken(Request):
    """A request for a credential with which registry clients log in."""

    repository: RepositoryPattern
    push: bool = False
    minutes: Annotated[int, Field(ge=1, le=24 * 60)] = 60


class RegistryTokenInfo(Reply):
    """A valid registry token, without its secret."""

    id: Id
    repository: str
    push: bool
    created_by: str
    created_at: datetime
    expires_at: datetime
    made_with: Id | None
    """The API token that asked for it."""


class RegistryTokenCreated(Reply):
    """The credential to log in with; the password is shown once."""

    id: str = ""
    """By which it is listed and revoked."""
    url: str
    repository: str
    push: bool
    username: str
    password: str
    expires_at: datetime


class RegistryPlace(Reply):
    """Where artifacts are stored: at `url`, or in the embedded registry of the Runner API."""

    url: str = ""
    folder: str = ""


class RepositoryInfo(Reply):
    """A repository and its size."""

    name: str
    manifests: int
    tags: int
    size: int


class TagInfo(Reply):
    """A tag and its current manifest."""

    tag: str
    digest: str
    changed_at: datetime


class CollectGarbage(Request):
    """A request to delete unreferenced content."""

    dry_run: bool = False
    older_than_s: Annotated[float, Field(ge=3600, le=366 * 86400)] = 86400.0


class GarbageReport(Reply):
    """What was deleted, or would be."""

    dry_run: bool
    manifests: int
    blobs: int
    bytes: int
    uploads: int
    orphans: int
    pinned: int
