"""The report of what a runner may do: data, from which pages and JSON are written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exclave.base.json_values import JsonObject
from exclave.domain.stacks import Cloud, RoleKind
from exclave.stacks.model import InputModel, NestedModel, RoleModel, SecretModel, StackModel
from exclave.stacks.nested import flatten_template
from exclave.stacks.reporting.aws_rights import list_denied, list_own_grants, read_rights
from exclave.stacks.reporting.egress import Destination, list_destinations
from exclave.stacks.reporting.other_rights import read_azure_rights, read_gcp_rights
from exclave.stacks.reporting.rights import Rights
from exclave.stacks.template_text import TemplateError


@dataclass(frozen=True, slots=True)
class RoleReport:
    """One role in words."""

    key: str
    kind: RoleKind
    name: str
    title: str
    description: str
    enabled: bool
    has_boundary: bool
    rights: Rights


@dataclass(frozen=True, slots=True)
class TemplateReport:
    """A template of the vendor's that becomes part of the Stack."""

    name: str
    address: str
    """Empty if its resources are known."""
    resources: Mapping[str, int]
    """How many resources of each type it has."""


@dataclass(frozen=True, slots=True)
class PermissionReport:
    """What a Stack lets a runner do."""

    app: str
    install: str
    cloud: Cloud
    roles: tuple[RoleReport, ...]
    secrets: tuple[SecretModel, ...]
    inputs: tuple[InputModel, ...]
    templates: tuple[TemplateReport, ...]
    destinations: tuple[Destination, ...]


def build_report(model: StackModel, definitions: Iterable[JsonObject] = ()) -> PermissionReport:
    """Return the report of a model; `definitions` are sandbox and components as they are stored."""
    return PermissionReport(
        app=model.app,
        install=model.install,
        cloud=model.cloud,
        roles=tuple(map(_report_role, model.roles, read_all_rights(model))),
        secrets=model.secrets,
        inputs=model.inputs,
        templates=tuple(map(_report_template, model.nested)),
        destinations=list_destinations(model, definitions),
    )


def read_all_rights(model: StackModel) -> tuple[Rights, ...]:
    """Return what each role may do in its cloud, in the order of the roles."""
    match model.cloud:
        case Cloud.AWS:
            denied = list_denied(model)
            return tuple(
                read_rights(role, denied, list_own_grants(model, role)) for role in model.roles
            )
        case Cloud.GCP:
            return tuple(map(read_gcp_rights, model.roles))
        case Cloud.AZURE:
            return tuple(map(read_azure_rights, model.roles))
        case Cloud.LOCAL:
            return ()


def _report_role(role: RoleModel, rights: Rights) -> RoleReport:
    return RoleReport(
        key=role.key,
        kind=role.kind,
        name=role.name,
        title=role.title,
        description=role.description,
        enabled=role.enabled,
        has_boundary=role.boundary is not None,
        rights=rights,
    )


def _report_template(nested: NestedModel) -> TemplateReport:
    types: dict[str, int] = {}
    try:
        # Values of parameters change no type.
        flat = flatten_template(nested.name, nested.content, {}) if nested.content else None
    except TemplateError:
        flat = None
    for resource in flat.resources.values() if flat else ():
        kind = str(resource.get("Type"))
        types[kind] = types.get(kind, 0) + 1
    address = nested.address or ("" if flat else "a file of the app")
    return TemplateReport(nested.name, address, dict(sorted(types.items())))
