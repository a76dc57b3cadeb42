"""Installs over the Control API."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema

from exclave.domain.installs import ApprovalOption as ApprovalOption
from exclave.domain.workflows import WorkflowKind as WorkflowKind
from exclave.wire.cloud_accounts import CloudAccountReply
from exclave.wire.identity import RunnerReply
from exclave.wire.jobs import JsonValue, LaneReply
from exclave.wire.model import Id, Labels, Name, Reply, Request, Text
from exclave.wire.spec_fields import Digest
from exclave.wire.workflows import WorkflowReply, WorkflowSummary

InputName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
InputText = Annotated[str, StringConstraints(max_length=65_536, pattern=r"^[^\x00]*$")]
InputTexts = Annotated[dict[InputName, InputText], Field(max_length=1000)]
PartName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_{}.:-]{1,200}$")]
PlaceText = Annotated[str, StringConstraints(max_length=100, pattern=r"^[A-Za-z0-9-]*$")]
Reason = Annotated[Text, StringConstraints(min_length=3)]


class NewInstall(Request):
    """A new install: an app in one customer's account.

    Without an app it is only a queue for workflows of your own.
    """

    name: Name
    app: Name | None = None
    """The name or the id of the app."""
    labels: Labels = {}
    inputs: InputTexts = {}
    approve_all: bool = False
    here: bool = False
    """Whether the server's own machine starts the runner; only `exclave dev` does."""
    provision: bool = True
    region: PlaceText = ""
    """Of an app for a cloud: the customer's region, or location of Azure."""
    account: PlaceText = ""
    """AWS account, Azure subscription or GCP project; empty if the first machine decides it."""
    tenant: PlaceText = ""
    """Azure: the tenant of the subscription."""
    confirm_account: bool = False
    """Without an account: no runner enrols until somebody confirms the one that came first."""


class InstallReply(Reply):
    """An install; its id is also the id of its queue."""

    id: Id
    name: str
    labels: dict[str, str]
    created_at: datetime
    app_id: Id | None = None
    app: str = ""
    state: str = ""
    target: str = ""
    region: str = ""
    account: str = ""
    """AWS account, Azure subscription or GCP project that was given; empty: any may apply it."""
    tenant: str = ""
    config_version: int | None = None
    newest_version: int | None = None
    """The newest config of the app: the install moves there when it is upgraded."""
    approve_all: bool = False
    approval_option: str = ""
    """`prompt`, `approve-all` or `auto`."""
    here: bool = False
    managed_by: str = ""
    workflow_id: Id | None = None
    """The workflow that this request started."""


class PartReply(Reply):
    """The sandbox or a component, and its state in this install."""

    part: str
    state: str
    drift: str
    config_version: int | None
    is_current: bool
    """Whether it was deployed from what the install's config says now."""
    message: str
    workflow_id: Id | None
    changed_at: datetime | None
    drift_at: datetime | None
    health: str = ""
    """`healthy` or `degraded`; empty if it was not looked at since its last deploy."""
    health_reason: str = ""
    health_at: datetime | None = None


class StackSummary(Reply):
    """The Stack of an install in a cloud: what the customer runs, and what waits for them."""

    state: str
    """That of the version that runs; of the newest one if none does."""
    running: int | None
    """The version that the customer runs."""
    newest: int
    mode: str = ""
    """`full` or `plan-only`, as the customer chose."""
    roles_off: list[str] = []
    """Roles that the customer has switched off, or not switched on."""
    machine: str = ""
    program: str = ""
    """The version of the runner program, whether the customer pins it, and a failed update."""
    leaving: str = ""
    """Why its machine goes, if it said so and no other one has reported since."""
    beacon: str = ""
    """What somebody says who claims to be its machine, as long as nobody has proved it."""


class InstallDetail(InstallReply):
    """An install with its parts, lanes, runners and last workflows."""

    stack: StackSummary | None = None
    """None for `local`."""
    component_toggles: dict[str, bool] = {}
    """Components that are switched on or off here, whatever their default."""
    component_overrides: dict[str, dict[str, str]] = {}
    cloud_account: CloudAccountReply | None = None
    """Whose machine may be its runner; None for an install that is in no cloud."""
    lanes: list[LaneReply] = []
    parts: list[PartReply] = []
    runners: list[RunnerReply] = []
    workflows: list[WorkflowSummary] = []


class SetLabels(Request):
    """The labels of an install, which replace the current ones."""

    labels: Labels


class SetManagedBy(Request):
    """Whether an install is managed by files (`config`) or by users (empty)."""

    managed_by: Annotated[str, StringConstraints(pattern=r"^(config)?$")]


class InputReply(Reply):
    """An input and its value in this install; sensitive values are never shown."""

    name: str
    group: str
    display_name: str
    description: str
    type: str
    value: str | None
    is_set: bool
    """Whether a value was given; otherwise the default holds."""
    default: str | None
    required: bool
    sensitive: bool
    owner: str
    """`vendor` or `customer`: who may set it."""


class InputGroupReply(Reply):
    """A group of inputs."""

    name: str
    display_name: str
    description: str


class InputsReply(Reply):
    """All inputs of an install, in the order of the app."""

    version: int
    at: datetime | None
    by: str
    groups: list[InputGroupReply]
    inputs: list[InputReply]


class SetInputs(Request):
    """Set inputs; those in `unset` get their defaults again."""

    values: InputTexts = {}
    unset: Annotated[list[InputName], Field(max_length=1000)] = []
    dry_run: bool = False
    approve_all: bool | None = None


class InputsChanged(Reply):
    """The result of setting inputs; if no value changed, no workflow is started."""

    version: int
    changed: list[str]
    sandbox: bool
    components: list[str]
    """The components that read the changed inputs, and those that depend on them."""
    workflow: WorkflowReply | None


STARTABLE = (
    WorkflowKind.PROVISION,
    WorkflowKind.REPROVISION,
    WorkflowKind.REPROVISION_SANDBOX,
    WorkflowKind.DEPROVISION_SANDBOX,
    WorkflowKind.DEPROVISION,
    WorkflowKind.DEPLOY,
    WorkflowKind.DEPLOY_ALL,
    WorkflowKind.TEARDOWN,
    WorkflowKind.TEARDOWN_ALL,
    WorkflowKind.SYNC_SECRETS,
    WorkflowKind.DRIFT_SCAN,
)
"""The workflow types that `StartWork` can request; each of the others has its own request."""


def _check_startable(kind: WorkflowKind) -> WorkflowKind:
    if kind not in STARTABLE:
        raise ValueError(f"`{kind}` is not started this way; use one of {', '.join(STARTABLE)}")
    return kind


StartableKind = Annotated[
    WorkflowKind,
    AfterValidator(_check_startable),
    WithJsonSchema({"type": "string", "enum": [str(kind) for kind in STARTABLE]}),
]


class StartWork(Request):
    """A request for a workflow of an install."""

    kind: StartableKind
    components: Annotated[list[PartName], Field(max_length=1000)] = []
    sandbox: bool = False
    """Of a drift scan: scan the sandbox too."""
    dependents: bool = False
    plan_only: bool = False
    rollback_to: Literal["previous"] | Digest | None = None
    """Of a deploy of one chart or manifest: deploy an earlier plan of it again."""
    take_over_release: bool = False
    """Of a deploy: take Helm releases over although somebody else seems to work on them."""
    adopt: bool = False
    """Of a deploy of one chart or manifest: it lives in another cluster than before."""
    approve_all: bool | None = None
    """None: the install's own setting."""


class Upgrade(Request):
    """Move an install to a config of its app; by default to the newest."""

    config: Annotated[int, Field(ge=1)] | None = None
    inputs: InputTexts = {}
    deploy: bool = False
    dry_run: bool = False
    approve_all: bool | None = None


class PartChange(Reply):
    """What an upgrade does to a part of an install."""

    part: str
    change: str
    """`added`, `changed` or `removed`."""


class Obstacle(Reply):
    """Why an install cannot be upgraded, and what to do about it."""

    message: str
    hint: str


class UpgradeReply(Reply):
    """What an upgrade changed, or would change."""

    install_id: Id
    name: str
    from_version: int
    to_version: int
    parts: list[PartChange]
    changed_inputs: list[str]
    dropped_inputs: list[str]
    new_stack: bool
    """Whether the config requires more of the customer, whose Stack then has to report first."""
    obstacles: list[Obstacle] = []
    """What has to be done first; only a dry run gets this far with any."""
    workflow: WorkflowReply | None = None


class StateReply(Reply):
    """A version of an install's state: all that templates can read below `.nuon`."""

    version: int
    at: datetime
    cause: str
    workflow_id: Id | None
    document: dict[str, JsonValue]


class ReadmeReply(Reply):
    """The app's README rendered for this install; raw, with warnings, if that fails."""

    text: str
    rendered: bool
    warnings: list[str]


class ComponentOverride(Request):
    """An override of a component in one install; an empty text removes an earlier one."""

    tf_vars: InputText | None = None
    helm_values: InputText | None = None


class InstallConfig(Request):
    """The content of an install file."""

    name: Name
    approval_option: ApprovalOption = ApprovalOption.PROMPT
    """`auto` approves plans that pass all their policies; one without policies needs approval."""
    component_toggles: Annotated[dict[PartName, bool], Field(max_length=1000)] = {}
    components: Annotated[dict[PartName, ComponentOverride], Field(max_length=1000)] = {}
    inputs: InputTexts = {}
    labels: Labels = {}
    region: PlaceText = ""
    account: PlaceText = ""
    tenant: PlaceText = ""


class SyncInstalls(Request):
    """Apply install files to the installs of an app."""

    app: Name
    installs: Annotated[list[InstallConfig], Field(min_length=1, max_length=200)]
    dry_run: bool = False


class ValueChange(Reply):
    """A changed value of an install; values of sensitive inputs are not shown."""

    what: str
    before: str | None
    after: str | None


class InstallSynced(Reply):
    """The result for one install."""

    name: str
    action: str
    """`create`, `update`, `none` or `refuse`."""
    install_id: Id | None
    changes: list[ValueChange]
    warnings: list[str]
    problem: str = ""
    hint: str = ""
    workflow_id: Id | None = None
    teardown_id: Id | None = None
    """The workflow that tears down the components that were switched off."""


class InstallsSynced(Reply):
    """The results for all installs; if one is refused, none was changed."""

    applied: bool
    installs: list[InstallSynced]
