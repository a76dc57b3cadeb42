"""The network and the runner's security group in a template."""

from exclave.stacks.azure.arm.builder import TemplateBuilder
from exclave.stacks.azure.arm.expressions import write_id
from exclave.stacks.azure.names import list_tags
from exclave.stacks.azure.network import PIECE_BITS, RULES, SUBNETS, Rule, Subnet
from exclave.stacks.azure.references import Fact, Native, Node, ParameterRef, Resource, ResourceRef
from exclave.stacks.azure.resources import (
    name_address,
    name_gateway,
    name_network,
    name_security_group,
)
from exclave.stacks.model import StackModel

_SKU = {"name": "Standard"}
_CIDR = ParameterRef("vnetCidr")


def add_network(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the security group, and a network that exists only if no subnet is named."""
    group, address = name_security_group(model), name_address(model)
    gateway, network = name_gateway(model), name_network(model)
    _add(builder, model, group, {"securityRules": [_write_rule(rule) for rule in RULES]})
    static: dict[str, Node] = {"publicIPAllocationMethod": "Static"}
    _add(builder, model, address, static, sku=_SKU)
    out: dict[str, Node] = {"publicIpAddresses": [{"id": ResourceRef(address)}]}
    _add(builder, model, gateway, out, address, sku=_SKU)
    subnets = [_write_subnet(subnet, gateway, group) for subnet in SUBNETS]
    space: dict[str, Node] = {"addressSpace": {"addressPrefixes": [_CIDR]}, "subnets": subnets}
    _add(builder, model, network, space, gateway, group)


def _add(
    builder: TemplateBuilder,
    model: StackModel,
    resource: Resource,
    properties: Node,
    *after: Resource,
    sku: Node = None,
) -> None:
    body: dict[str, Node] = {"location": Fact.LOCATION, "tags": list_tags(model), "sku": sku}
    builder.add(resource, {**body, "properties": properties}, after=after)


def _write_rule(rule: Rule) -> Node:
    properties: dict[str, Node] = {
        "priority": rule.priority,
        "direction": rule.direction,
        "access": rule.access,
        "protocol": rule.protocol,
        "sourceAddressPrefix": "*",
        "sourcePortRange": "*",
        "destinationAddressPrefix": rule.to,
        "destinationPortRange": rule.port,
    }
    return {"name": rule.name, "properties": properties}


def _write_subnet(subnet: Subnet, gateway: Resource, group: Resource) -> Node:
    piece = Native(f"cidrSubnet(parameters('vnetCidr'), {PIECE_BITS}, {subnet.piece})")
    properties: dict[str, Node] = {"addressPrefix": piece, "defaultOutboundAccess": False}
    if subnet.has_gateway:
        properties["natGateway"] = {"id": Native(write_id(gateway))}
    if subnet.is_runner:
        properties["networkSecurityGroup"] = {"id": Native(write_id(group))}
    return {"name": subnet.name, "properties": properties}
