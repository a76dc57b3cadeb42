"""The Terraform module of a Stack."""

from collections.abc import Mapping

from exclave.base.json_values import Json
from exclave.stacks.azure.document import has_registry
from exclave.stacks.azure.names import list_tags
from exclave.stacks.azure.parameters import StackParameter, is_subscription, list_parameters
from exclave.stacks.azure.references import Attribute, ResourceRef
from exclave.stacks.azure.resources import GROUP as GROUP_TYPE
from exclave.stacks.azure.resources import (
    RUNNER_VAULT,
    SECRET_VAULT,
    TWINS,
    name_machine,
)
from exclave.stacks.azure.terraform.builder import ModuleBuilder
from exclave.stacks.azure.terraform.expressions import write_value
from exclave.stacks.azure.terraform.identities import add_identities
from exclave.stacks.azure.terraform.log import add_log
from exclave.stacks.azure.terraform.machine import add_machine
from exclave.stacks.azure.terraform.nested import add_nested
from exclave.stacks.azure.terraform.network import add_network
from exclave.stacks.azure.terraform.variables import add_variable
from exclave.stacks.azure.terraform.vaults import add_document, add_registry, add_vaults
from exclave.stacks.model import StackModel
from exclave.stacks.parameter_kinds import Group
from exclave.stacks.terraform.text import quote

TERRAFORM = ">= 1.11"
PROVIDER = ">= 4.42, < 5"
_LIMITED = 'var.runner_mode == "plan-only"'
CONDITIONS = {
    "enabled": "var.runner_enabled",
    "plan_only": f"var.runner_enabled && {_LIMITED}",
    "full": f"var.runner_enabled && !({_LIMITED})",
    "new_network": 'var.runner_subnet_id == ""',
    "has_certificates": 'var.ca_bundle != ""',
    "has_disk_key": 'var.disk_encryption_set_id != ""',
}
"""The conditions of the template; that of a role is its variable."""


def build_module(model: StackModel) -> ModuleBuilder:
    """Return the module of a model."""
    builder = ModuleBuilder()
    _add_settings(builder, model)
    builder.open_file("variables")
    for parameter in list_variables(model):
        add_variable(builder, parameter)
    builder.open_file("network")
    add_network(builder, model)
    builder.open_file("identities")
    add_identities(builder, model)
    if model.nested:
        builder.open_file("nested")
    nested = add_nested(builder, model)
    builder.open_file("vaults")
    add_vaults(builder, model)
    add_registry(builder, model)
    builder.open_file("machine")
    add_document(builder, model, nested, add_log(builder, model))
    add_machine(builder, model)
    builder.open_file("outputs")
    _add_outputs(builder, model)
    return builder


def write_files(model: StackModel) -> Mapping[str, str]:
    """Return the text of the files of the module, by their names."""
    return build_module(model).write_files()


def list_variables(model: StackModel) -> tuple[StackParameter, ...]:
    """Return the parameters, with the resource group that a template is applied to."""
    parameters = list_parameters(model)
    if is_subscription(model):
        return parameters
    group = StackParameter(
        name="resourceGroupName", group=Group.RUNNER, label="Resource group", default=None,
        about="The resource group of the Stack and the app, which exists",
    )  # fmt: skip
    return (group, *parameters)


def _add_settings(builder: ModuleBuilder, model: StackModel) -> None:
    builder.open_file("main")
    builder.add_settings(
        TERRAFORM, {"azurerm": {"source": "hashicorp/azurerm", "version": PROVIDER}}
    )
    builder.add_data("azurerm_client_config", "current", {})
    group = _add_group(builder, model)
    for name, expression in {**_list_facts(model, group), **CONDITIONS}.items():
        builder.add_local(name, f"${{{expression}}}")


def _add_group(builder: ModuleBuilder, model: StackModel) -> str:
    """Add the resource group, or find it; return its address."""
    name: dict[str, Json] = {"name": "${var.resource_group_name}"}
    type_ = TWINS[GROUP_TYPE]
    if not is_subscription(model):
        builder.add_data(type_, "group", name)
        return f"data.{type_}.group"
    body = {**name, "location": "${var.location}", "tags": dict(list_tags(model))}
    builder.add_block("resource", type_, "resource_group", body)
    return f"{type_}.resource_group"


def _list_facts(model: StackModel, group: str) -> Mapping[str, str]:
    seed = f'sha256("${{{group}.id}}/{quote(model.install_id)}")'
    current = "data.azurerm_client_config.current"
    facts = {
        "subscription_id": f"{current}.subscription_id",
        "tenant_id": f"{current}.tenant_id",
        "group_id": f"{group}.id",
        "group_name": f"{group}.name",
        "group_location": f"{group}.location",
        "location": f'var.location == "" ? {group}.location : var.location',
        "unique": f"substr({seed}, 0, 13)",
        "runner_vault": '"xr${local.unique}"',
        "secret_vault": '"xs${local.unique}"',
        "vault_domain": '".vault.azure.net"',
    }
    registry = {"registry": '"xc${local.unique}"', "registry_domain": '".azurecr.io"'}
    return {**facts, **(registry if has_registry(model) else {})}


def _add_outputs(builder: ModuleBuilder, model: StackModel) -> None:
    builder.add_output("outputs", "What the app reads of this Stack", "${local.document.outputs}")
    for name, about, reference in (
        ("runner_machine", "The scale set of one machine", name_machine(model)),
        ("runner_vault", "The vault of the document and the seal", RUNNER_VAULT),
        ("secret_vault", "The vault of the app's secrets", SECRET_VAULT),
    ):
        value = write_value(ResourceRef(reference, Attribute.NAME))
        builder.add_output(name, about, str(value))
