"""Query strings as models: an unknown parameter is an error, never ignored."""

from typing import Annotated

from fastapi import Query
from pydantic import AwareDatetime, Field, StringConstraints

from exclave.base.id_forms import ID_PATTERN
from exclave.wire.builds import BuildState
from exclave.wire.drift_findings import FindingState
from exclave.wire.jobs import JobState
from exclave.wire.model import Id, Name, Text
from exclave.wire.model import Request as Strict
from exclave.wire.runner import Count
from exclave.wire.spec_fields import Repository, Workspace
from exclave.wire.states import LockId
from exclave.wire.workflows import WorkflowState

Cursor = Annotated[str, StringConstraints(pattern=f"^({ID_PATTERN})?$")]
LogCursor = Annotated[str, StringConstraints(pattern=f"^({ID_PATTERN}:[0-9]{{1,15}})?$")]
RepositoryCursor = Annotated[str, StringConstraints(pattern=r"^[a-z0-9._/-]*$", max_length=255)]
TagCursor = Annotated[str, StringConstraints(pattern=r"^([a-zA-Z0-9_][a-zA-Z0-9._-]{0,127})?$")]
LabelPair = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}=[^\x00]{0,200}$")]
Needle = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]


class PageQuery(Strict):
    """A page of a list."""

    cursor: Cursor = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 100


class RunnerQuery(PageQuery):
    """Filter of runners."""

    queue_id: Id | None = None


class WorkflowQuery(PageQuery):
    """Filter of workflows."""

    queue_id: Id | None = None
    state: WorkflowState | None = None


class JobQuery(PageQuery):
    """Filter of jobs."""

    queue_id: Id | None = None
    workflow_id: Id | None = None
    state: JobState | None = None


class RunsQuery(PageQuery):
    """Filter of action runs."""

    action: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")] | None = None


class FindingQuery(PageQuery):
    """Filter of drift findings; a part is `sandbox` or `component:<name>`."""

    part: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")] | None = None
    state: FindingState | None = None


class BuildQuery(PageQuery):
    """Filter of builds; a part is `component:<name>` or its name, `sandbox`, `action:<a>:<s>`."""

    app: Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-z0-9_-]+$")] | None = None
    part: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")] | None = None
    state: BuildState | None = None


class LogQuery(Strict):
    """A part of a job's log; without `execution`, of the latest attempt."""

    execution: Id | None = None
    offset: Count = 0
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000
    wait_s: Annotated[float, Field(ge=0, le=60)] = 0.0


class LogStreamQuery(Strict):
    """Where to begin following; `Last-Event-ID` has precedence."""

    execution: Id | None = None
    offset: Count = 0


class SearchQuery(Strict):
    """The text to search for."""

    q: Needle
    cursor: LogCursor = ""


class QueueSearchQuery(SearchQuery):
    """The text to search for, and the install."""

    queue_id: Id


class AppendQuery(Strict):
    """The offset of a piece of log, and the epoch of its execution."""

    offset: Count
    epoch: Count


class EpochQuery(Strict):
    """The epoch of an execution."""

    epoch: Count


class StateQuery(EpochQuery):
    """A Terraform workspace."""

    workspace: Workspace


class StateWriteQuery(StateQuery):
    """A Terraform workspace, and the lock that is held."""

    lock_id: LockId


class VersionQuery(Strict):
    """A version; by default the newest."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None


class OrphansQuery(Strict):
    """Whether to include lanes that were released since."""

    all: bool = False


class InstallQuery(PageQuery):
    """Filter of installs: all conditions must hold; `label` is `key=value` and may be repeated."""

    app: Name | None = None
    state: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,40}$")] | None = None
    name: Name | None = None
    label: Annotated[list[LabelPair], Field(max_length=32, default_factory=list)]

    def read_labels(self) -> dict[str, str]:
        """Return the labels as a mapping."""
        return dict(pair.split("=", 1) for pair in self.label)


class InstallStateQuery(VersionQuery):
    """A version of an install's state: by its number, or the newest at a time."""

    at: AwareDatetime | None = None


class RevokeQuery(Strict):
    """What is revoked together with a token."""

    cascade: bool = False
    """Also the tokens, enrolment tokens, registry tokens and Stack codes made with it."""
    runners: bool = False
    """Also the runners that joined by its enrolment tokens."""
    dry_run: bool = False
    """Return what would be revoked, and revoke nothing."""


class ForgetQuery(Strict):
    """The reason to delete an install that may have left resources behind."""

    forget: Annotated[Text, StringConstraints(min_length=3)] | None = None


class SyncQuery(Strict):
    """Options of syncing an app directory."""

    strict: bool = False
    """Unknown keys are errors."""
    dry_run: bool = False
    """Return what would happen, and store nothing."""


class DiffQuery(Strict):
    """The versions to compare."""

    before: Annotated[int, Field(ge=1, le=1_000_000_000)]
    after: Annotated[int, Field(ge=1, le=1_000_000_000)]


class RepositoryQuery(Strict):
    """A page of repositories; the cursor is the name of the last one seen."""

    cursor: RepositoryCursor = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 100


class TagQuery(Strict):
    """A page of the tags of a repository; the cursor is the last tag seen."""

    repository: Repository
    cursor: TagCursor = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 100


PageOf = Annotated[PageQuery, Query()]
RepositoriesOf = Annotated[RepositoryQuery, Query()]
TagsOf = Annotated[TagQuery, Query()]
SyncOf = Annotated[SyncQuery, Query()]
DiffOf = Annotated[DiffQuery, Query()]
InstallsOf = Annotated[InstallQuery, Query()]
InstallStateOf = Annotated[InstallStateQuery, Query()]
RevokeOf = Annotated[RevokeQuery, Query()]
ForgetOf = Annotated[ForgetQuery, Query()]
RunnersOf = Annotated[RunnerQuery, Query()]
WorkflowsOf = Annotated[WorkflowQuery, Query()]
BuildsOf = Annotated[BuildQuery, Query()]
JobsOf = Annotated[JobQuery, Query()]
LogOf = Annotated[LogQuery, Query()]
LogStreamOf = Annotated[LogStreamQuery, Query()]
SearchOf = Annotated[SearchQuery, Query()]
QueueSearchOf = Annotated[QueueSearchQuery, Query()]
AppendOf = Annotated[AppendQuery, Query()]
EpochOf = Annotated[EpochQuery, Query()]
StateOf = Annotated[StateQuery, Query()]
StateWriteOf = Annotated[StateWriteQuery, Query()]
VersionOf = Annotated[VersionQuery, Query()]
OrphansOf = Annotated[OrphansQuery, Query()]
RunsOf = Annotated[RunsQuery, Query()]
FindingsOf = Annotated[FindingQuery, Query()]
