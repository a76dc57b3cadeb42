"""What the customer fills in: the variables of the module."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from exclave.base.json_values import Json, JsonObject
from exclave.domain.stacks import RoleKind
from exclave.stacks.break_glass import PAST, TIME
from exclave.stacks.model import InputModel, RoleModel, SecretModel, StackModel
from exclave.stacks.naming import write_snake
from exclave.stacks.parameter_kinds import ParameterKind, find_input_kind, write_flag
from exclave.stacks.terraform.module_files import ModuleFiles
from exclave.stacks.terraform.text import escape, quote

USUAL_MACHINE: Final = "e2-medium"
IMAGE: Final = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-{}"
ARM: Final = ("t2a-", "c4a-", "n4a-", "a4x-")
"""How the types of machines with an Arm processor begin."""
DESCRIPTION: Final = 400
"""How many characters of the vendor's words a variable shows."""
VERSION_ABOUT: Final = "Raise it to store a new value: values are in no plan and no state"
_NAME: Final = r"[A-Za-z0-9_./:-]*"
_KEY: Final = "^(projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+)?$"
_TYPES: Final = {
    ParameterKind.TEXT: "string",
    ParameterKind.FLAG: "bool",
    ParameterKind.NUMBER: "number",
    ParameterKind.LIST: "list(string)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A value that the customer fills in."""

    name: str
    about: str
    kind: ParameterKind = ParameterKind.TEXT
    default: str | None = ""
    """None: the customer has to fill it in."""
    choices: tuple[str, ...] = ()
    pattern: str = ""
    """A regular expression for the whole text."""
    bounds: tuple[int, int] | None = None
    is_secret: bool = False
    """Whether the value belongs into Secret Manager and nowhere else."""
    is_required: bool = False
    """Whether the app does not work without it, though it may be given later."""


def list_variables(model: StackModel) -> tuple[Variable, ...]:
    """Return all variables of a Stack."""
    return (
        *_list_runner_variables(model),
        *_list_network_variables(),
        *_list_role_variables(model),
        *(build_secret_variable(secret) for secret in model.secrets if not secret.auto_generate),
        *(build_input_variable(item) for item in model.inputs),
    )


def name_switch(role: RoleModel) -> str:
    """Return the variable that switches a role on."""
    return f"enable_{role.key}"


def build_secret_variable(secret: SecretModel) -> Variable:
    """Return the variable by which the customer gives a secret of the app; empty: not given."""
    return Variable(
        name=f"{write_snake(secret.name)}_secret",
        about=_write_about(secret.title or secret.name, secret.description),
        default=secret.default,
        is_secret=True,
        is_required=secret.required and not secret.default,
    )


def build_input_variable(item: InputModel) -> Variable:
    """Return the variable of an input."""
    kind = find_input_kind(item)
    default = item.default if item.default is not None or item.required else ""
    if kind is ParameterKind.FLAG:
        default = write_flag(default)
    return Variable(
        name=f"install_{write_snake(item.name)}",
        about=_write_about(item.title or item.name, item.description),
        kind=kind,
        default=(default or "") if item.sensitive else default,
        is_secret=item.sensitive,
        is_required=item.required and not item.default,
    )


def add_variable(files: ModuleFiles, variable: Variable) -> None:
    """Add a variable to the module; a secret one comes with the version of its value."""
    body: dict[str, Json] = {"description": variable.about, "type": _TYPES[variable.kind]}
    if variable.default is not None:
        body["default"] = _write_default(variable)
    if variable.is_secret:
        body |= {"sensitive": True, "ephemeral": True}
    else:
        body["nullable"] = False
    if rules := _list_rules(variable):
        body["validation"] = rules
    files.add_variable(variable.name, body)
    if variable.is_secret:
        version: JsonObject = {"description": VERSION_ABOUT, "type": "number", "default": 1}
        files.add_variable(f"{variable.name}_version", version)


def _list_runner_variables(model: StackModel) -> Iterator[Variable]:
    machine = model.instance_type or USUAL_MACHINE
    flag, number = ParameterKind.FLAG, ParameterKind.NUMBER
    yield Variable(
        name="project_id", default=model.account.id or None, about="The project for everything",
        pattern="^[a-z][a-z0-9-]{4,28}[a-z0-9]$",
    )  # fmt: skip
    yield Variable(
        name="region", default=model.account.region or None, about="The region for everything",
        pattern="^[a-z]+(-[a-z]+)+[0-9]+$",
    )  # fmt: skip
    yield Variable(
        name="runner_enabled", default="true", kind=flag,
        about="The kill switch: false stops the runner and disables all its accounts, at once",
    )  # fmt: skip
    yield Variable(
        name="runner_mode", default="full", choices=("full", "plan-only"),
        about="plan-only: all roles can read and nothing else",
    )  # fmt: skip
    yield Variable(
        name="runner_updates", default="auto", choices=("auto", "pinned"),
        about="pinned: the program in this Stack; auto: also newer ones that the vendor signed",
    )  # fmt: skip
    yield Variable(
        name="machine_type", default=machine, pattern="^[a-z0-9-]+$",
        about="Type of the machine; one with an Arm processor needs an image for it",
    )  # fmt: skip
    yield Variable(
        name="image", default=find_image(machine), pattern=f"^{_NAME}$",
        about="Image or family of images of Ubuntu 24.04",
    )  # fmt: skip
    yield Variable(
        name="disk_gib", default="40", kind=number, bounds=(20, 2000), about="Disk in GiB"
    )
    yield Variable(
        name="kms_key", pattern=_KEY,
        about="A key of yours for the disk and the secrets; empty: Google's own keys",
    )  # fmt: skip
    yield Variable(
        name="keep_seal", default="true", kind=flag,
        about="false lets a destroy delete the seal, without which no state can be read",
    )  # fmt: skip
    if not model.account.is_known:
        yield Variable(
            name="enrolment_code", pattern="^[A-Za-z0-9_-]*$",
            about="One-time code of the vendor; ties this project to the install",
        )  # fmt: skip


def find_image(machine: str) -> str:
    """Return the family of images for a type of machine."""
    return IMAGE.format("arm64" if machine.startswith(ARM) else "amd64")


def _list_network_variables() -> Iterator[Variable]:
    yield Variable(
        name="network", pattern=f"^{_NAME}$",
        about="Name or id of your own network, which may be shared; empty: a new one is made",
    )  # fmt: skip
    yield Variable(
        name="runner_subnetwork", pattern=f"^{_NAME}$",
        about="Id of the subnetwork for the runner, in your own network",
    )  # fmt: skip
    yield Variable(
        name="private_subnetworks", kind=ParameterKind.LIST,
        about="Ids of the subnetworks for the app, in your own network",
    )  # fmt: skip
    yield Variable(
        name="cidr", default="10.128.0.0/16", pattern=r"^[0-9.]+/(1[0-9]|2[0-4]|[89])$",
        about="Addresses of a new network; in both cases where the runner reaches the app",
    )  # fmt: skip
    yield Variable(
        name="proxy_url", pattern=r"^(https?://[A-Za-z0-9._~:@%/-]+)?$",
        about="Proxy on the way to the vendor",
    )  # fmt: skip
    yield Variable(
        name="mirror_url", pattern=r"^(https?://[A-Za-z0-9._~:@%/-]+)?$",
        about="Where the runner program and tools come from, instead of the vendor and the makers",
    )  # fmt: skip
    yield Variable(
        name="ca_bundle", pattern=r"^(projects/[^/]+/secrets/[^/]+)?$",
        about="Id of a secret with certificates in PEM that the machine is to trust",
    )  # fmt: skip


def _list_role_variables(model: StackModel) -> Iterator[Variable]:
    if model.list_roles(RoleKind.BREAK_GLASS):
        yield Variable(
            name="break_glass_until", default=PAST,
            pattern=TIME,
            about="UTC: break-glass roles work until then, and only if they are switched on",
        )  # fmt: skip
    for role in model.roles:
        yield Variable(
            name=name_switch(role), kind=ParameterKind.FLAG,
            default="true" if role.enabled else "false",
            about=_write_about(f"Role: {role.title or role.name}", role.description),
        )  # fmt: skip


def _write_about(title: str, text: str) -> str:
    return (f"{title}: {text}" if text else title)[:DESCRIPTION]


def _write_default(variable: Variable) -> Json:
    default = variable.default or ""
    match variable.kind:
        case ParameterKind.FLAG:
            return default == "true"
        case ParameterKind.NUMBER:
            return float(default) if "." in default else int(default)
        case ParameterKind.LIST:
            return [item.strip() for item in default.split(",")] if default else []
        case ParameterKind.TEXT:
            return default


def _list_rules(variable: Variable) -> list[JsonObject]:
    value, rules = f"var.{variable.name}", []
    if variable.choices:
        choices = ", ".join(f'"{choice}"' for choice in variable.choices)
        text = f"One of {', '.join(variable.choices)}."
        rules.append((f"contains([{choices}], {value})", text))
    if variable.bounds:
        low, high = variable.bounds
        rules.append((f"{value} >= {low} && {value} <= {high}", f"Between {low} and {high}."))
    if variable.pattern:
        check = f'can(regex("{quote(variable.pattern)}", {value}))'
        rules.append((check, f"It has to match {variable.pattern}"))
    elif variable.default is None and variable.kind is ParameterKind.TEXT:
        rules.append((f'{value} != ""', "It must not be empty."))
    return [
        {"condition": f"${{{condition}}}", "error_message": escape(message)}
        for condition, message in rules
    ]
