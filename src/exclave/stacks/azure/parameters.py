"""What the customer fills in: the same parameters in both forms."""

from collections.abc import Iterator
from dataclasses import dataclass

from exclave.domain.stacks import RoleKind
from exclave.stacks.azure.machine_images import USUAL_MACHINE, find_image
from exclave.stacks.azure.names import write_key, write_prefix
from exclave.stacks.azure.references import ParameterKind, ParameterRef
from exclave.stacks.break_glass import PAST, TIME
from exclave.stacks.model import InputModel, RoleModel, SecretModel, StackModel
from exclave.stacks.naming import write_camel, write_snake
from exclave.stacks.parameter_kinds import Group, find_input_kind, write_flag

BREAK_GLASS_END = "breakGlassUntil"
DESCRIPTION = 400
"""How many characters of the vendor's words a parameter shows."""
NOBODYS_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDUT2Jni4/nk6qKZhXrOHdj6/eePphXDKtuQ9ZqOCtaA nobody"
)
"""A public key without a private one: the first hash of a counted sentence that is a point."""
_SUBNET = (
    r"/subscriptions/[0-9a-f-]{36}/resourceGroups/[^/]+"
    r"/providers/Microsoft.Network/virtualNetworks/[^/]+/subnets/[^/]+"
)
_KEY = r"^(ssh-(ed25519|rsa) [A-Za-z0-9+/=]+( [^\n]*)?)$"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackParameter:
    """A value that the customer fills in."""

    name: str
    group: Group
    label: str
    about: str = ""
    kind: ParameterKind = ParameterKind.TEXT
    default: str | None = ""
    """None: the customer has to fill it in."""
    choices: tuple[str, ...] = ()
    pattern: str = ""
    """A regular expression for the whole text; only Terraform checks it."""
    bounds: tuple[int, int] | None = None
    secret: bool = False
    is_whole: bool = False
    """Whether a number is a whole one; others are texts in templates, which have no fractions."""

    @property
    def variable(self) -> str:
        """The name in Terraform."""
        return write_snake(self.name.replace("GiB", "Gib"))

    @property
    def reference(self) -> ParameterRef:
        """What the customer filled in."""
        return ParameterRef(self.name, self.kind)


def list_parameters(model: StackModel) -> tuple[StackParameter, ...]:
    """Return all parameters of a Stack, in the order in which a form shows them."""
    return (
        *_list_runner_parameters(model),
        *_list_machine_parameters(model),
        *_list_network_parameters(),
        *_list_role_parameters(model),
        *(build_secret_parameter(secret) for secret in model.secrets if not secret.auto_generate),
        *(build_input_parameter(item) for item in model.inputs),
    )


def is_subscription(model: StackModel) -> bool:
    """Return whether the Stack makes its resource group, and is applied to a subscription."""
    return model.deployment_scope == "subscription"


def _list_runner_parameters(model: StackModel) -> Iterator[StackParameter]:
    group, region = Group.RUNNER, model.account.region
    if is_subscription(model):
        yield StackParameter(
            name="resourceGroupName", group=group, label="Resource group",
            default=write_prefix(model)[:90], pattern=r"^[-\w._()]{1,90}$",
            about="The resource group that is made for the Stack and the app",
        )  # fmt: skip
    yield StackParameter(
        name="location", group=group, label="Location",
        default=region or (None if is_subscription(model) else ""), pattern="^[a-z0-9]*$",
        about="Where everything is made, such as westeurope"
        + ("" if region or is_subscription(model) else "; empty: where the group is"),
    )  # fmt: skip
    yield StackParameter(
        name="runnerEnabled", group=group, label="Runner enabled", default="true",
        kind=ParameterKind.FLAG,
        about="The kill switch: false stops the runner and takes all rights away",
    )  # fmt: skip
    yield StackParameter(
        name="runnerMode", group=group, label="What the runner may do", default="full",
        choices=("full", "plan-only"), about="plan-only: all roles can read and nothing else",
    )  # fmt: skip
    yield StackParameter(
        name="runnerUpdates", group=group, label="Updates of the runner program", default="auto",
        choices=("auto", "pinned"),
        about="pinned: the version in this Stack; auto: also newer ones that the vendor signed",
    )  # fmt: skip
    if not model.account.is_known:
        yield StackParameter(
            name="enrolmentCode", group=group, label="One-time code of the vendor",
            pattern=r"^[A-Za-z0-9_-]*$",
            about="Works once; ties this subscription to the install",
        )  # fmt: skip


def _list_machine_parameters(model: StackModel) -> Iterator[StackParameter]:
    group, machine = Group.RUNNER, model.instance_type or USUAL_MACHINE
    yield StackParameter(
        name="vmSize", group=group, label="Size of the machine", default=machine,
        pattern=r"^[A-Za-z0-9_-]+$",
        about="A size with an Arm processor needs an image for it (imageSku server-arm64)",
    )  # fmt: skip
    yield StackParameter(
        name="imageSku", group=group, label="Image of the machine", default=find_image(machine),
        choices=("server", "server-arm64"), about="Ubuntu 24.04 for the processor of the machine",
    )  # fmt: skip
    yield StackParameter(
        name="diskGiB", group=group, label="Disk in GiB", default="40",
        kind=ParameterKind.NUMBER, bounds=(30, 2000), is_whole=True,
    )  # fmt: skip
    yield StackParameter(
        name="encryptionAtHost", group=group, label="Encryption at host", default="false",
        kind=ParameterKind.FLAG,
        about="Encrypts caches and the temporary disk too; the subscription has to allow it",
    )  # fmt: skip
    yield StackParameter(
        name="diskEncryptionSetId", group=group, label="Disk encryption set",
        about="Id of a set with a key of yours for the disk; empty: a key of Azure",
    )  # fmt: skip
    yield StackParameter(
        name="logDays", group=group, label="Days to keep the runner's log", default="90",
        kind=ParameterKind.NUMBER, bounds=(30, 730), is_whole=True,
    )  # fmt: skip
    yield StackParameter(
        name="sshPublicKey", group=group, label="SSH key", default=NOBODYS_KEY, pattern=_KEY,
        about="Azure wants one; nobody has the private key of the default, and nothing comes in",
    )  # fmt: skip


def _list_network_parameters() -> Iterator[StackParameter]:
    group = Group.NETWORK
    yield StackParameter(
        name="runnerSubnetId", group=group, label="Existing subnet of the runner",
        pattern=rf"^({_SUBNET})?$",
        about="With a way out to the internet; empty: a new network is made",
    )  # fmt: skip
    for name, what in (("privateSubnetIds", "private"), ("publicSubnetIds", "public")):
        yield StackParameter(
            name=name, group=group, label=f"Existing {what} subnets for the app",
            kind=ParameterKind.LIST, about="Ids with commas between them",
        )  # fmt: skip
    yield StackParameter(
        name="vnetCidr", group=group, label="Addresses of a new network",
        default="10.128.0.0/16", pattern=r"^([0-9]{1,3}\.){3}[0-9]{1,3}/(8|9|1[0-8])$",
        about="/8 to /18; it is cut into pieces of /20",
    )  # fmt: skip
    yield StackParameter(
        name="proxyUrl", group=group, label="HTTPS proxy",
        pattern=r"^(https?://[A-Za-z0-9._~:@%/-]+)?$",
        about="What the runner and its jobs reach the internet by",
    )  # fmt: skip
    yield StackParameter(
        name="mirrorUrl", group=group, label="Mirror of programs",
        pattern=r"^(https?://[A-Za-z0-9._~:@%/-]+)?$",
        about="Where the runner program and tools come from, instead of the vendor and the makers",
    )  # fmt: skip
    yield StackParameter(
        name="caBundle", group=group, label="Certificates to trust",
        about="In PEM, such as those of a proxy; read at the first start of a machine",
    )  # fmt: skip


def name_switch(role: RoleModel) -> str:
    """Return the parameter by which the customer gives a role its rights or not."""
    return f"enable{write_key(role)}"


def _list_role_parameters(model: StackModel) -> Iterator[StackParameter]:
    if model.list_roles(RoleKind.BREAK_GLASS):
        yield StackParameter(
            name=BREAK_GLASS_END, group=Group.ROLES, label="End of break-glass", default=PAST,
            pattern=TIME,
            about="UTC: the runner uses break-glass roles until then, if they are switched on",
        )  # fmt: skip
    yield from (_build_switch(role) for role in model.roles)


def _build_switch(role: RoleModel) -> StackParameter:
    return StackParameter(
        name=name_switch(role),
        group=Group.ROLES,
        label=f"Role: {role.title or role.name}"[:DESCRIPTION],
        about=role.description[:DESCRIPTION],
        kind=ParameterKind.FLAG,
        default="true" if role.enabled else "false",
    )


def build_secret_parameter(secret: SecretModel) -> StackParameter:
    """Return the parameter by which the customer gives a secret of the app."""
    camel = write_camel(secret.name)
    return StackParameter(
        name=f"{camel[:1].lower()}{camel[1:]}Secret",
        group=Group.SECRETS,
        label=(secret.title or secret.name)[:DESCRIPTION],
        about=secret.description[:DESCRIPTION],
        default=None if secret.required and not secret.default else secret.default,
        secret=True,
    )


def build_input_parameter(item: InputModel) -> StackParameter:
    """Return the parameter of an input."""
    kind = find_input_kind(item)
    default = item.default if item.default is not None or item.required else ""
    if kind is ParameterKind.FLAG:
        default = write_flag(default)
    return StackParameter(
        name=f"install{write_camel(item.name)}",
        group=Group.INPUTS,
        label=(item.title or item.name)[:DESCRIPTION],
        about=item.description[:DESCRIPTION],
        kind=kind,
        default=default,
        secret=item.sensitive,
    )
