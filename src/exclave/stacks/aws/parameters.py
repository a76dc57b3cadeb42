"""What the customer fills in: the same parameters in both forms."""

from collections.abc import Iterator
from dataclasses import dataclass

from exclave.domain.stacks import RoleKind
from exclave.stacks.aws.machine_images import find_image
from exclave.stacks.aws.references import ParameterKind, ParameterRef
from exclave.stacks.aws.resources import name_switch
from exclave.stacks.break_glass import PAST, TIME
from exclave.stacks.model import InputModel, RoleModel, SecretModel, StackModel
from exclave.stacks.naming import write_camel, write_snake
from exclave.stacks.parameter_kinds import Group, find_input_kind, write_flag

USUAL_MACHINE = "t3.medium"
SWITCH = "RunnerEnabled"
BREAK_GLASS_END = "BreakGlassUntil"
LOG_DAYS = ("1", "3", "7", "14", "30", "60", "90", "180", "365", "731", "1827", "3653")
DESCRIPTION = 400
"""How many characters of the vendor's words a parameter shows."""
_ARN = "arn:[a-z-]+:"
_KMS = rf"^({_ARN}kms:[a-z0-9-]+:[0-9]{{12}}:key/[A-Za-z0-9-]+)?$"


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
    """A regular expression for the whole text, in what Java and RE2 have in common."""
    bounds: tuple[int, int] | None = None
    secret: bool = False

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
        *_list_network_parameters(model),
        *_list_role_parameters(model),
        *(build_secret_parameter(secret) for secret in model.secrets if not secret.auto_generate),
        *(build_input_parameter(item) for item in model.inputs),
    )


def _list_runner_parameters(model: StackModel) -> Iterator[StackParameter]:
    group, machine = Group.RUNNER, model.instance_type or USUAL_MACHINE
    yield StackParameter(
        name=SWITCH, group=group, label="Runner enabled", default="true",
        kind=ParameterKind.FLAG,
        about="The kill switch: false stops the runner and takes all rights away, at once",
    )  # fmt: skip
    yield StackParameter(
        name="RunnerMode", group=group, label="What the runner may do", default="full",
        choices=("full", "plan-only"), about="plan-only: all roles can read and nothing else",
    )  # fmt: skip
    yield StackParameter(
        name="RunnerUpdates", group=group, label="Updates of the runner program", default="auto",
        choices=("auto", "pinned"),
        about="pinned: the version in this Stack; auto: also newer ones that the vendor signed",
    )  # fmt: skip
    yield StackParameter(
        name="InstanceType", group=group, label="Type of the machine", default=machine,
        pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$",
        about="A type with an Arm processor needs an image for it (ImageId with arm64)",
    )  # fmt: skip
    yield StackParameter(
        name="ImageId", group=group, label="Image of the machine", default=find_image(machine),
        pattern=r"^/[A-Za-z0-9_./-]+$",
        about="Name of an SSM parameter that holds the id of an image of Ubuntu 24.04",
    )  # fmt: skip
    yield StackParameter(
        name="DiskGiB", group=group, label="Disk in GiB", default="40",
        kind=ParameterKind.NUMBER, bounds=(20, 2000),
    )  # fmt: skip
    yield StackParameter(
        name="SessionManager", group=group, label="Session Manager", default="false",
        kind=ParameterKind.FLAG,
        about="true: people of this account may open a shell on the machine by Session Manager",
    )  # fmt: skip
    yield StackParameter(
        name="LogDays", group=group, label="Days to keep the runner's log", default="90",
        kind=ParameterKind.NUMBER, choices=LOG_DAYS,
    )  # fmt: skip
    yield StackParameter(
        name="KmsKeyArn", group=group, label="KMS key", pattern=_KMS,
        about="A key of yours for the disk, the secrets and the log; empty: AWS's own keys",
    )  # fmt: skip
    if not model.account.is_known:
        yield StackParameter(
            name="EnrolmentCode", group=group, label="One-time code of the vendor",
            pattern=r"^[A-Za-z0-9_-]*$",
            about="Works once; ties this account to the install",
        )  # fmt: skip


def _list_network_parameters(model: StackModel) -> Iterator[StackParameter]:
    group, must = Group.NETWORK, needs_own_network(model)
    yield StackParameter(
        name="VpcId", group=group, label="Existing VPC", default=None if must else "",
        pattern="^vpc-[0-9a-f]+$" if must else "^(vpc-[0-9a-f]+)?$",
        about="The VPC for the runner and the app" if must else "Empty: a new VPC is made",
    )  # fmt: skip
    yield StackParameter(
        name="RunnerSubnetId", group=group, label="Subnet of the runner in that VPC",
        default=None if must else "",
        pattern="^subnet-[0-9a-f]+$" if must else "^(subnet-[0-9a-f]+)?$",
        about="A private subnet with a way out to the internet, or to all that the runner needs",
    )  # fmt: skip
    for name, what in (("PrivateSubnetIds", "Private"), ("PublicSubnetIds", "Public")):
        yield StackParameter(
            name=name, group=group, label=f"{what} subnets in that VPC, for the app",
            kind=ParameterKind.LIST,
        )  # fmt: skip
    yield StackParameter(
        name="VpcCidr", group=group, label="Addresses of the VPC", default="10.128.0.0/16",
        pattern=r"^([0-9]{1,3}\.){3}[0-9]{1,3}/(8|9|1[0-9]|2[0-8])$",
        about="Of a new VPC, /16 or /17; of an existing VPC, its own: the runner may reach these",
    )  # fmt: skip
    yield StackParameter(
        name="ProxyUrl", group=group, label="HTTPS proxy",
        pattern=r"^(https?://[A-Za-z0-9._~:@%/-]+)?$",
        about="What the runner and its jobs reach the internet by",
    )  # fmt: skip
    yield StackParameter(
        name="MirrorUrl", group=group, label="Mirror of programs",
        pattern=r"^(https?://[A-Za-z0-9._~:@%/-]+)?$",
        about="Where the runner program and tools come from, instead of the vendor and the makers",
    )  # fmt: skip
    yield StackParameter(
        name="CaBundleParameter", group=group, label="Certificates to trust",
        pattern=r"^(/[A-Za-z0-9_.-]+)*$",
        about="Name of an SSM parameter with certificates in PEM, such as those of a proxy;"
        " read at the first start of a machine",
    )  # fmt: skip


def _list_role_parameters(model: StackModel) -> Iterator[StackParameter]:
    group = Group.ROLES
    yield StackParameter(
        name="PermissionsBoundaryArn", group=group, label="Your permissions boundary",
        pattern=rf"^({_ARN}iam::([0-9]{{12}}|aws):policy/[A-Za-z0-9+=,.@_/-]+)?$",
        about="ARN of a managed policy: put on every role that has no boundary of the app",
    )  # fmt: skip
    yield StackParameter(
        name="RolePath", group=group, label="Path of the roles", default="/",
        pattern=r"^/([A-Za-z0-9+=,.@_-]+/)*$",
    )  # fmt: skip
    if model.list_roles(RoleKind.BREAK_GLASS):
        yield StackParameter(
            name=BREAK_GLASS_END, group=group, label="End of break-glass", default=PAST,
            pattern=TIME,
            about="UTC: break-glass roles work until then, and only if they are switched on",
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
    return StackParameter(
        name=f"{write_camel(secret.name)}Secret",
        group=Group.SECRETS,
        label=(secret.title or secret.name)[:DESCRIPTION],
        about=secret.description[:DESCRIPTION],
        default=None if secret.required and not secret.default else secret.default,
        secret=True,
    )


def build_input_parameter(item: InputModel) -> StackParameter:
    """Return the parameter of an input; its prefix is what templates of existing apps expect."""
    kind = find_input_kind(item)
    default = item.default if item.default is not None or item.required else ""
    if kind is ParameterKind.FLAG:
        default = write_flag(default)
    return StackParameter(
        name=f"Install{write_camel(item.name)}",
        group=Group.INPUTS,
        label=(item.title or item.name)[:DESCRIPTION],
        about=item.description[:DESCRIPTION],
        kind=kind,
        default=default,
        secret=item.sensitive,
    )


def needs_own_network(model: StackModel) -> bool:
    """Return whether the app expects a VPC of the customer's."""
    return "/byo-vpc/" in model.network_template
