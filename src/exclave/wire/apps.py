"""Apps and their config versions over the Control API."""

from datetime import datetime
from typing import Annotated

from pydantic import StringConstraints

from exclave.wire.model import Id, Reply, Request

AppName = Annotated[
    str, StringConstraints(max_length=63, pattern=r"^[a-z0-9]+(?:(?:_|__|-+)[a-z0-9]+)*$")
]
"""A name that can also be that of a repository of artifacts."""


class NewApp(Request):
    """An app that has no version yet."""

    name: AppName


class ConfigReply(Reply):
    """An immutable version of an app."""

    id: Id
    version: int
    digest: str
    """Names the content: two versions with the same content have the same digest."""
    archive_digest: str
    components: list[str]
    cloud: str
    current: bool
    """Whether new installs get it."""
    created_at: datetime
    created_by: str


class AppReply(Reply):
    """An app, its current version, and how many installs it has."""

    id: Id
    name: str
    created_at: datetime
    created_by: str
    installs: int
    config: ConfigReply | None
    """None if the app was never synced."""


class AppFinding(Reply):
    """An error or a warning about an app directory."""

    severity: str
    code: str
    file: str
    line: int
    column: int
    message: str
    hint: str
    text: str | None = None
    """The line itself; None for findings about a file or folder as a whole."""


class ConfigFieldChange(Reply):
    """A changed field of a part; None means that the field is absent."""

    path: str
    before: str | None
    after: str | None
    diff: str
    """A unified diff, for texts of several lines."""


class ConfigPartChange(Reply):
    """A part of an app that was added, changed or removed."""

    section: str
    name: str
    change: str
    fields: list[ConfigFieldChange]


class InstallImpact(Reply):
    """An install that an upgrade to the newer version would change."""

    id: Id
    name: str
    version: int
    """The version that it runs."""
    parts: list[str]
    """What differs for it, such as `component:api`."""


class ConfigDiffReply(Reply):
    """The differences between two versions of an app."""

    app: str
    before: int | None
    """None if there is no earlier version."""
    after: int | None
    """None for a dry run."""
    parts: list[ConfigPartChange]
    builds: list[str]
    """The parts that are built for the newer version, such as `component:api`."""
    installs: list[InstallImpact]
    more_installs: int = 0
    """How many installs beyond the listed ones would change."""


class SyncReply(Reply):
    """The result of syncing an app directory."""

    app: str
    changed: bool
    """Whether the content differs from the current version."""
    dry_run: bool
    config: ConfigReply | None
    """The current version; None after a dry run of an app that has none."""
    findings: list[AppFinding]
    """Warnings; an upload with errors is refused as a whole."""
    diff: ConfigDiffReply
    workflow_id: str | None = None
    """The workflow that builds changed parts."""
