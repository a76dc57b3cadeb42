"""The network and the runner's security group in Terraform."""

from exclave.stacks.azure.names import list_tags, write_name
from exclave.stacks.azure.network import PIECE_BITS, RULES, SUBNETS, Rule, Subnet
from exclave.stacks.azure.references import (
    Attribute,
    Child,
    Fact,
    Native,
    Node,
    ParameterRef,
    ResourceRef,
)
from exclave.stacks.azure.resources import (
    NEW_NETWORK,
    get_subnet,
    name_address,
    name_gateway,
    name_network,
    name_security_group,
)
from exclave.stacks.azure.terraform.builder import ModuleBuilder
from exclave.stacks.model import StackModel

_CIDR = ParameterRef("vnetCidr")
_NEW = (NEW_NETWORK,)
_LISTS = (
    "source_address_prefixes", "source_port_ranges", "source_application_security_group_ids",
    "destination_address_prefixes", "destination_port_ranges",
    "destination_application_security_group_ids",
)  # fmt: skip
"""What rules do not use; their JSON has to name everything."""


def place(model: StackModel, name: str) -> dict[str, Node]:
    """Return the arguments that most resources have."""
    return {
        "name": name,
        "location": Fact.LOCATION,
        "resource_group_name": Fact.GROUP,
        "tags": list_tags(model),
    }


def add_network(builder: ModuleBuilder, model: StackModel) -> None:
    """Add the security group, and a network that exists only if no subnet is named."""
    group, address = name_security_group(model), name_address(model)
    gateway, network = name_gateway(model), name_network(model)
    rules = [_write_rule(rule) for rule in RULES]
    builder.add(group, {**place(model, write_name(model, "runner")), "security_rule": rules})
    nat = place(model, write_name(model, "nat"))
    builder.add(address, {**nat, "allocation_method": "Static", "sku": "Standard"})
    builder.add(gateway, {**nat, "sku_name": "Standard"})
    joined: dict[str, Node] = {
        "nat_gateway_id": ResourceRef(gateway),
        "public_ip_address_id": ResourceRef(address),
    }
    builder.add_resource(
        "azurerm_nat_gateway_public_ip_association", "nat_gateway_address", joined, _NEW
    )
    named = place(model, write_name(model, "network"))
    builder.add(network, {**named, "address_space": [_CIDR]})
    for subnet in SUBNETS:
        _add_subnet(builder, model, subnet)


def _write_rule(rule: Rule) -> Node:
    unused: dict[str, Node] = {name: [] for name in _LISTS}
    return {
        **unused,
        "name": rule.name,
        "description": "",
        "priority": rule.priority,
        "direction": rule.direction,
        "access": rule.access,
        "protocol": rule.protocol,
        "source_address_prefix": "*",
        "source_port_range": "*",
        "destination_address_prefix": rule.to,
        "destination_port_range": rule.port,
    }


def _add_subnet(builder: ModuleBuilder, model: StackModel, subnet: Subnet) -> None:
    bits = f'{PIECE_BITS} - tonumber(split("/", var.vnet_cidr)[1])'
    name, child = f"{subnet.name}_subnet", get_subnet(model, subnet.name)
    arguments: dict[str, Node] = {
        "name": subnet.name,
        "resource_group_name": Fact.GROUP,
        "virtual_network_name": ResourceRef(name_network(model), Attribute.NAME),
        "address_prefixes": [Native(f"cidrsubnet(var.vnet_cidr, {bits}, {subnet.piece})")],
        "default_outbound_access_enabled": False,
    }
    builder.add_resource("azurerm_subnet", name, arguments, _NEW)
    if subnet.has_gateway:
        gateway = {"nat_gateway_id": ResourceRef(name_gateway(model))}
        _associate(builder, "nat_gateway", name, child, gateway)
    if subnet.is_runner:
        group = {"network_security_group_id": ResourceRef(name_security_group(model))}
        _associate(builder, "network_security_group", name, child, group)


def _associate(
    builder: ModuleBuilder, what: str, name: str, subnet: Child, other: dict[str, ResourceRef]
) -> None:
    type_ = f"azurerm_subnet_{what}_association"
    builder.add_resource(type_, name, {"subnet_id": subnet, **other}, _NEW)
