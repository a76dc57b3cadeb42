"""Identities, role definitions and assignments in a template."""

from exclave.stacks.azure.arm.builder import TemplateBuilder
from exclave.stacks.azure.arm.expressions import write_id
from exclave.stacks.azure.names import list_tags
from exclave.stacks.azure.references import Fact, Native, Node, Resource, Text
from exclave.stacks.azure.resources import get_principal, list_identities
from exclave.stacks.azure.roles import Assignment, list_assignments, list_definitions
from exclave.stacks.model import StackModel


def add_identities(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the identity of the runner, and one for each role."""
    for identity in list_identities(model):
        builder.add(identity, {"location": Fact.LOCATION, "tags": list_tags(model)})


def add_definitions(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the roles of Azure that the app's actions are."""
    for definition in list_definitions(model):
        permission: dict[str, Node] = {
            "actions": definition.actions,
            "notActions": [],
            "dataActions": definition.data_actions,
            "notDataActions": [],
        }
        properties: dict[str, Node] = {
            "roleName": definition.title,
            "description": definition.about,
            "type": "CustomRole",
            "permissions": [permission],
            "assignableScopes": [Fact.GROUP_ID],
        }
        builder.add(definition.resource, {"properties": properties})


def add_assignments(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the rights of identities."""
    for given in list_assignments(model):
        properties: dict[str, Node] = {
            "roleDefinitionId": _write_granted(given),
            "principalId": get_principal(given.identity),
            "principalType": "ServicePrincipal",
        }
        after = [given.identity]
        after += [given.granted] if isinstance(given.granted, Resource) else []
        made_by = given.after or given.scope
        after += [made_by] if made_by else []
        scope = Native(write_id(given.scope)) if given.scope else None
        builder.add(given.resource, {"scope": scope, "properties": properties}, after=after)


def _write_granted(given: Assignment) -> Text:
    if isinstance(given.granted, Resource):
        return Native(write_id(given.granted))
    type_ = "'Microsoft.Authorization/roleDefinitions'"
    return Native(f"subscriptionResourceId({type_}, '{given.granted}')")
