"""Identities, role definitions and assignments in Terraform."""

from exclave.base.json_values import Json
from exclave.stacks.azure.names import list_tags
from exclave.stacks.azure.references import Fact, Node, Resource, ResourceRef, Text, join_text
from exclave.stacks.azure.resources import TWINS, get_principal, list_identities
from exclave.stacks.azure.roles import Assignment, list_assignments, list_definitions
from exclave.stacks.azure.terraform.builder import ModuleBuilder
from exclave.stacks.azure.terraform.expressions import write_address
from exclave.stacks.model import StackModel

PRINCIPAL = "ServicePrincipal"


def add_identities(builder: ModuleBuilder, model: StackModel) -> None:
    """Add identities, and the rights that they have."""
    for identity in list_identities(model):
        arguments: dict[str, Node] = {
            "name": identity.title[0],
            "location": Fact.LOCATION,
            "resource_group_name": Fact.GROUP,
            "tags": list_tags(model),
        }
        builder.add(identity, arguments)
    for definition in list_definitions(model):
        permissions: dict[str, Node] = {
            "actions": definition.actions,
            "not_actions": [],
            "data_actions": definition.data_actions,
            "not_data_actions": [],
        }
        body: dict[str, Node] = {
            "name": definition.title,
            "description": definition.about,
            "role_definition_id": definition.resource.title[0],
            "scope": Fact.GROUP_ID,
            "assignable_scopes": [Fact.GROUP_ID],
            "permissions": [permissions],
        }
        builder.add(definition.resource, body)
    for given in list_assignments(model):
        _add_assignment(builder, given)


def _add_assignment(builder: ModuleBuilder, given: Assignment) -> None:
    arguments: dict[str, Node] = {
        "name": given.resource.title[0],
        "scope": _write_scope(given.scope),
        "role_definition_id": _write_granted(given.granted),
        "principal_id": get_principal(given.identity),
        "principal_type": PRINCIPAL,
        "skip_service_principal_aad_check": True,
    }
    needed: dict[str, Json] = {"depends_on": [write_address(given.after)]} if given.after else {}
    builder.add(given.resource, arguments, **needed)


def _write_scope(scope: Resource | None) -> Text:
    """Return the id of a scope; what a template makes is no resource of Terraform."""
    if scope is None:
        return Fact.GROUP_ID
    if scope.type in TWINS:
        return ResourceRef(scope)
    return join_text(Fact.GROUP_ID, f"/providers/{scope.type}/", scope.title[0])


def _write_granted(granted: Resource | str) -> Text:
    if isinstance(granted, Resource):
        return ResourceRef(granted)
    return write_built_in(granted)


def write_built_in(role_id: str) -> Text:
    """Return the id of a built-in role in the subscription."""
    path = "/providers/Microsoft.Authorization/roleDefinitions/"
    return join_text("/subscriptions/", Fact.SUBSCRIPTION, f"{path}{role_id}")
