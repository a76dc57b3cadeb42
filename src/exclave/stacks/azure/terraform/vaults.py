"""Vaults, secrets and the document in Terraform.

Values are ephemeral: they are in no plan and in no state. What is given stays as it is until the
version beside it is raised.
"""

from exclave.stacks.azure.built_in_roles import SECRETS_OFFICER, find_role_id
from exclave.stacks.azure.document import NestedOutputs, build_stack_document, has_registry
from exclave.stacks.azure.machine import BLANK, GIVEN_CODE, SEAL_DAYS, SECRET_DAYS
from exclave.stacks.azure.names import list_tags
from exclave.stacks.azure.parameters import (
    StackParameter,
    build_input_parameter,
    build_secret_parameter,
)
from exclave.stacks.azure.references import (
    Fact,
    Native,
    Node,
    ParameterRef,
    Resource,
    ResourceRef,
)
from exclave.stacks.azure.resources import (
    CA_BUNDLE,
    IMAGE_REGISTRY,
    RUNNER_VAULT,
    SECRET_VAULT,
    STACK_DOCUMENT,
    name_input,
    name_secret,
)
from exclave.stacks.azure.terraform.builder import ModuleBuilder
from exclave.stacks.azure.terraform.expressions import write_document_text
from exclave.stacks.azure.terraform.identities import write_built_in
from exclave.stacks.model import StackModel
from exclave.stacks.naming import write_snake


def add_vaults(builder: ModuleBuilder, model: StackModel) -> None:
    """Add the vault of the runner and that of the app, with what the customer gives."""
    _add_vault(builder, model, RUNNER_VAULT, SEAL_DAYS)
    _add_vault(builder, model, SECRET_VAULT, SECRET_DAYS)
    _add_secret(builder, model, CA_BUNDLE, {"value": ParameterRef("caBundle")})
    for secret in model.secrets:
        if not secret.auto_generate:
            value = _write_given(build_secret_parameter(secret))
            _add_secret(builder, model, name_secret(secret), value)
    for item in model.inputs:
        if item.sensitive:
            value = _write_given(build_input_parameter(item))
            _add_secret(builder, model, name_input(item), value)


def add_document(
    builder: ModuleBuilder, model: StackModel, nested: NestedOutputs, log: Native
) -> None:
    """Add the document that the runner reads."""
    builder.add_local("document", write_document_text(build_stack_document(model, nested, log)))
    _add_secret(builder, model, STACK_DOCUMENT, {"value": Native("jsonencode(local.document)")})


def add_registry(builder: ModuleBuilder, model: StackModel) -> None:
    """Add the registry that the app's images are copied to, if the app reads it."""
    if has_registry(model):
        arguments: dict[str, Node] = {
            "name": Fact.REGISTRY,
            "location": Fact.LOCATION,
            "resource_group_name": Fact.GROUP,
            "sku": "Basic",
            "admin_enabled": False,
            "anonymous_pull_enabled": False,
            "tags": list_tags(model),
        }
        builder.add(IMAGE_REGISTRY, arguments)


def _add_vault(builder: ModuleBuilder, model: StackModel, vault: Resource, days: int) -> None:
    """Add a vault, and the right to fill it of whoever applies the module."""
    arguments: dict[str, Node] = {
        "name": vault.title[0],
        "location": Fact.LOCATION,
        "resource_group_name": Fact.GROUP,
        "tenant_id": Fact.TENANT,
        "sku_name": "standard",
        "rbac_authorization_enabled": True,
        "soft_delete_retention_days": days,
        "purge_protection_enabled": True,
        "enabled_for_deployment": False,
        "enabled_for_template_deployment": False,
        "enabled_for_disk_encryption": False,
        "public_network_access_enabled": True,
        "tags": list_tags(model),
    }
    builder.add(vault, arguments)
    right: dict[str, Node] = {
        "scope": ResourceRef(vault),
        "role_definition_id": write_built_in(find_role_id(SECRETS_OFFICER)),
        "principal_id": Native("data.azurerm_client_config.current.object_id"),
    }
    builder.add_resource("azurerm_role_assignment", _name_right(vault), right)


def _name_right(vault: Resource) -> str:
    return f"appliers_{write_snake(vault.name)}"


def _add_secret(
    builder: ModuleBuilder, model: StackModel, resource: Resource, value: dict[str, Node]
) -> None:
    where, name = resource.title
    vault = RUNNER_VAULT if where is Fact.RUNNER_VAULT else SECRET_VAULT
    arguments: dict[str, Node] = {
        "name": name,
        "key_vault_id": ResourceRef(vault),
        "content_type": GIVEN_CODE,
        **value,
        "tags": list_tags(model),
    }
    needed = [f"azurerm_role_assignment.{_name_right(vault)}"]
    builder.add(resource, arguments, depends_on=needed)


def _write_given(parameter: StackParameter) -> dict[str, Node]:
    variable = f"var.{parameter.variable}"
    return {
        "value_wo": Native(f'{variable} == "" ? "{BLANK}" : {variable}'),
        "value_wo_version": Native(f"{variable}_version"),
    }
