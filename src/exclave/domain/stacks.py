"""Stacks: the clouds they are for, their states, what the customer fills in, what they report."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Self

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId

STACK_FILE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")
"""The name of a file of a Stack: folders and a last part, none of which begins with a dot."""


class Cloud(StrEnum):
    """Where an app runs, as `runner_type` in its `runner.toml` names it."""

    LOCAL = "local"
    """Any machine of the customer."""
    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"


class StackState(StrEnum):
    """How far the customer is with a version of an install's Stack."""

    AWAITING = "awaiting"
    """The customer has not run it yet."""
    BOOTING = "booting"
    """A machine says that it starts; nobody has proved anything yet."""
    INCOMPLETE = "incomplete"
    """It runs, and a required input of the customer is missing."""
    ACTIVE = "active"
    OUTDATED = "outdated"
    """It runs, and a newer version waits for the customer; shown, never stored."""
    DISABLED = "disabled"
    """It runs, and the customer has thrown its kill switch."""
    SUPERSEDED = "superseded"
    """The customer runs a newer one, or a newer one is to be run instead."""
    REMOVED = "removed"
    """The customer removed it, and its runner gave up its identity."""


@dataclass(frozen=True, slots=True)
class StackVersion:
    """A version of an install's Stack; a config that asks more of the customer makes a new one."""

    id: str
    version: int
    state: StackState
    config_id: str
    outputs: JsonObject
    created_at: datetime
    run_at: datetime | None
    """When its last changed report arrived."""
    digest: str | None = None
    """The digest of the model; None for `local`, and until there is a model."""
    files: Sequence[Mapping[str, str | int]] | None = None
    """The files as they were rendered first (`StoredFile`); None before."""
    generator: str | None = None
    """The version of the control plane that rendered them."""
    applied_digest: str | None = None
    """The digest that the customer's document names; None before the first report."""
    applied_at: datetime | None = None
    """When it was applied, as far as a report said so first."""
    report: JsonObject | None = None
    """What the last report says beside the outputs: document, roles, mode, machine."""
    beacon: JsonObject | None = None
    """What a machine that proved nothing has said last."""

    @property
    def is_run(self) -> bool:
        """Whether the customer runs this version, as far as reports say."""
        return self.state in RUN


RUN = frozenset({StackState.INCOMPLETE, StackState.ACTIVE, StackState.DISABLED})
"""The states of a version that the customer runs."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a version as it was rendered; its bytes are a blob."""

    name: str
    media_type: str
    sha256: str
    size: int
    blob: str
    form: str = ""


@dataclass(frozen=True, slots=True)
class StackView:
    """A link with which a customer looks at the Stack of an install; it enrols nobody."""

    org: OrgId
    id: str
    install_id: str
    created_by: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StackCode:
    """A code by which a customer fetches the files of a Stack."""

    org: OrgId
    id: str
    install_id: str
    enrolment_id: str
    """The newest enrolment token that the code gave out."""
    created_by: str
    expires_at: datetime
    parent_id: str | None
    """The API token that created it; it is revoked with that token."""
    is_used: bool = False
    """Whether the runner has enrolled: then the code fetches nothing any more."""


@dataclass(frozen=True, slots=True)
class StackSecret:
    """A secret that the app declares and that stays with the customer."""

    name: str
    description: str = ""
    required: bool = False
    auto_generate: bool = False


@dataclass(frozen=True, slots=True)
class StackInput:
    """An input that the customer sets."""

    name: str
    description: str = ""
    type: str = "string"
    default: str | None = None
    required: bool = False
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class StackTerms:
    """What the app's current config asks of the customer."""

    install_id: str
    install: str
    app: str
    secrets: tuple[StackSecret, ...] = ()
    inputs: tuple[StackInput, ...] = ()


class RoleKind(StrEnum):
    """What a role in the customer's account is for."""

    PROVISION = "provision"
    """Create and change the sandbox, sync secrets."""
    MAINTENANCE = "maintenance"
    """Deploy components, run actions."""
    DEPROVISION = "deprovision"
    """Remove the sandbox."""
    CUSTOM = "custom"
    """What the app names it for."""
    BREAK_GLASS = "break_glass"
    """Emergencies: the customer switches it on, for a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFacts:
    """Facts that a Stack reports about the place where it runs; each cloud has a subclass."""

    region: str
    others: Mapping[str, str] = field(default_factory=dict)
    """Facts that this version does not know: a newer runner may report more."""

    @classmethod
    def from_report(cls, reported: Mapping[str, str]) -> Self:
        """Sort reported facts into the fields of this class and into `others`."""
        names = cls._list_names()
        known = {name: text for name, text in reported.items() if name in names}
        others = {name: text for name, text in reported.items() if name not in names}
        return cls(**known, others=others)

    def to_outputs(self) -> dict[str, str]:
        """Return the facts by name, as templates read them; a fact not reported is left out."""
        known = {name: getattr(self, name) for name in self._list_names()}
        return {name: text for name, text in known.items() if text is not None} | {**self.others}

    @classmethod
    def _list_names(cls) -> list[str]:
        return [item.name for item in fields(cls) if item.name != "others"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFacts(StackFacts):
    """Facts about the machine of a `local` Stack."""

    region: str = "local"
    hostname: str | None = None
    os: str | None = None
    os_version: str | None = None
    arch: str | None = None
    python: str | None = None
    python_path: str | None = None
    folder: str | None = None
    data_folder: str | None = None
    time_zone: str | None = None
    user: str | None = None
    jobs_isolated: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsFacts(StackFacts):
    """Facts about the account and the network of an AWS Stack."""

    account_id: str | None = None
    partition: str | None = None
    stack_id: str | None = None
    vpc_id: str | None = None
    runner_subnet: str | None = None
    public_subnets: str | None = None
    private_subnets: str | None = None
    runner_security_group: str | None = None
    runner_iam_role_arn: str | None = None
    provision_iam_role_arn: str | None = None
    maintenance_iam_role_arn: str | None = None
    deprovision_iam_role_arn: str | None = None
    log_group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureFacts(StackFacts):
    """Facts about the subscription and the network of an Azure Stack."""

    subscription_id: str | None = None
    subscription_tenant_id: str | None = None
    resource_group_id: str | None = None
    resource_group_name: str | None = None
    resource_group_location: str | None = None
    network_id: str | None = None
    network_name: str | None = None
    private_subnet_ids: str | None = None
    private_subnet_names: str | None = None
    public_subnet_ids: str | None = None
    public_subnet_names: str | None = None
    key_vault_id: str | None = None
    key_vault_name: str | None = None
    runner_identity_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GcpFacts(StackFacts):
    """Facts about the project and the network of a Stack in Google Cloud."""

    project_id: str | None = None
    network_name: str | None = None
    network_id: str | None = None
    private_subnet_name: str | None = None
    private_subnet_names: str | None = None
    public_subnet_name: str | None = None
    runner_subnet_name: str | None = None
    runner_service_account_email: str | None = None
    provision_sa_email: str | None = None
    maintenance_sa_email: str | None = None
    deprovision_sa_email: str | None = None
    gke_node_pool_sa_email: str | None = None
