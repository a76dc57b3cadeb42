"""What the Stack of one install in a cloud consists of, before any template language."""

from collections.abc import Mapping
from dataclasses import dataclass

from exclave.base.json_values import JsonObject
from exclave.domain.stacks import Cloud, RoleKind
from exclave.stacks.base import SigningKey


@dataclass(frozen=True, slots=True)
class PolicyModel:
    """One thing that a role may do; exactly one of the ways to say it is set."""

    name: str = ""
    managed: str = ""
    """AWS: the name or ARN of a managed policy."""
    document: JsonObject | None = None
    """AWS: a policy document with `Version` and `Statement`."""
    gcp_permissions: tuple[str, ...] = ()
    gcp_role: str = ""
    azure_actions: tuple[str, ...] = ()
    azure_roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleModel:
    """A role that the Stack creates, and that jobs may run with."""

    key: str
    """Snake case, unique in the Stack: the kind of a standard role, else made from the name."""
    kind: RoleKind
    name: str
    """As the app writes it and as jobs ask for it, rendered; unique."""
    title: str
    description: str = ""
    enabled: bool = True
    """Whether it is on until the customer decides otherwise."""
    policies: tuple[PolicyModel, ...] = ()
    boundary: JsonObject | None = None
    """AWS: the permissions boundary of the app."""


@dataclass(frozen=True, slots=True)
class SecretModel:
    """A secret that stays with the customer, as a parameter of the Stack."""

    name: str
    title: str = ""
    description: str = ""
    required: bool = False
    auto_generate: bool = False
    default: str = ""


@dataclass(frozen=True, slots=True)
class InputModel:
    """An input that the customer sets, as a parameter of the Stack."""

    name: str
    title: str = ""
    description: str = ""
    type: str = "string"
    default: str | None = None
    required: bool = False
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class NestedModel:
    """A template of the vendor's that becomes a part of the Stack."""

    name: str
    index: int
    address: str
    """An https address, or `<repository>//folder` for GCP; empty if it is a file of the app."""
    content: str = ""
    """The text of the template, if it is a file of the app."""
    parameters: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ProgramPins:
    """The archives of the runner program that a new machine starts with, by their SHA-256."""

    version: str
    x86_64: str
    aarch64: str


@dataclass(frozen=True, slots=True)
class AccountPin:
    """Where the Stack is to be applied, as far as that is known when it is made."""

    region: str
    id: str = ""
    """AWS account, Azure subscription or GCP project; empty if the first machine decides it."""
    tenant: str = ""
    """The Azure tenant of the subscription."""

    @property
    def is_known(self) -> bool:
        """Whether a machine of another account is to be refused from the start."""
        return bool(self.id)


@dataclass(frozen=True, slots=True)
class StackModel:
    """Everything that a cloud's Stack is made from. It holds no token, no key and no secret.

    The forms of a Stack (CloudFormation, Terraform, ARM, …) are pure functions of it, so that the
    same model gives the same bytes.
    """

    install_id: str
    install: str
    org_id: str
    app: str
    cloud: Cloud
    account: AccountPin
    stack_name: str
    description: str
    runner_url: str
    keys: tuple[SigningKey, ...]
    program: ProgramPins
    roles: tuple[RoleModel, ...] = ()
    secrets: tuple[SecretModel, ...] = ()
    inputs: tuple[InputModel, ...] = ()
    nested: tuple[NestedModel, ...] = ()
    instance_type: str = ""
    """Empty: the usual size of the cloud."""
    network_template: str = ""
    runner_template: str = ""
    """The addresses in `stack.toml`; the known defaults stand for the network and runner below."""
    deployment_scope: str = "resource_group"
    """Azure: `resource_group` or `subscription`."""
    wanted_outputs: tuple[str, ...] = ()
    """The outputs of the Stack that a text of the app reads, sorted; they decide optional parts."""

    def list_roles(self, kind: RoleKind) -> tuple[RoleModel, ...]:
        """List the roles of one kind, in the order of the app."""
        return tuple(role for role in self.roles if role.kind is kind)
