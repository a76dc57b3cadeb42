"""The network and the runner's security group in Terraform."""

from collections.abc import Mapping

from exclave.stacks.aws.names import list_guarded_tags, list_network_tags, list_tags, write_prefix
from exclave.stacks.aws.network import (
    PIECE_BITS,
    SECURITY_GROUP_ABOUT,
    Subnet,
    get_vpc,
    list_egress,
    list_subnets,
)
from exclave.stacks.aws.references import Fact, Native, Node, ParameterRef, ResourceRef, join_text
from exclave.stacks.aws.resources import (
    GATEWAY_ATTACHMENT,
    INTERNET_GATEWAY,
    NAT_ADDRESS,
    NAT_GATEWAY,
    PRIVATE_ROUTE,
    PRIVATE_ROUTE_TABLE,
    PUBLIC_ROUTE,
    PUBLIC_ROUTE_TABLE,
    S3_ENDPOINT,
    SECURITY_GROUP,
    VPC,
)
from exclave.stacks.aws.terraform.builder import ModuleBuilder
from exclave.stacks.aws.terraform.expressions import write_address
from exclave.stacks.model import StackModel

_ANYWHERE = "0.0.0.0/0"
_ADDRESS_BITS = 32
_NO_SOURCES: Mapping[str, Node] = {
    "ipv6_cidr_blocks": [],
    "prefix_list_ids": [],
    "security_groups": [],
    "self": False,
}


def add_network(builder: ModuleBuilder, model: StackModel) -> None:
    """Add a VPC with subnets and a way out; all of it exists only if no VPC is named."""
    builder.add_data("aws_availability_zones", "available", {"state": "available"})
    tags = {"Name": write_prefix(model), **list_network_tags(model)}
    vpc: dict[str, Node] = {"cidr_block": ParameterRef("VpcCidr"), "tags": tags}
    builder.add(VPC, {**vpc, "enable_dns_support": True, "enable_dns_hostnames": True})
    for subnet in list_subnets(model):
        _add_subnet(builder, subnet)
    _add_gateways(builder, model)
    _add_routes(builder, model)


def _add_subnet(builder: ModuleBuilder, subnet: Subnet) -> None:
    bits = f'{_ADDRESS_BITS - PIECE_BITS} - tonumber(split("/", var.vpc_cidr)[1])'
    zone = f"data.aws_availability_zones.available.names[{subnet.zone}]"
    builder.add(
        subnet.resource,
        {
            "vpc_id": ResourceRef(VPC),
            "cidr_block": Native(f"cidrsubnet(var.vpc_cidr, {bits}, {subnet.piece})"),
            "availability_zone": Native(zone),
            "map_public_ip_on_launch": False,
            "tags": subnet.tags,
        },
    )
    table = PUBLIC_ROUTE_TABLE if subnet.is_public else PRIVATE_ROUTE_TABLE
    ids = {"route_table_id": ResourceRef(table), "subnet_id": ResourceRef(subnet.resource)}
    builder.add(subnet.routes, ids)


def _add_gateways(builder: ModuleBuilder, model: StackModel) -> None:
    tags = {"Name": write_prefix(model), **list_tags(model)}
    builder.add(INTERNET_GATEWAY, {"tags": tags})
    builder.add(
        GATEWAY_ATTACHMENT,
        {"vpc_id": ResourceRef(VPC), "internet_gateway_id": ResourceRef(INTERNET_GATEWAY)},
    )
    depends: list[str] = [write_address(GATEWAY_ATTACHMENT)]
    builder.add(NAT_ADDRESS, {"domain": "vpc", "tags": tags}, depends_on=depends)
    first = next(subnet for subnet in list_subnets(model) if subnet.is_public)
    ids = {
        "allocation_id": ResourceRef(NAT_ADDRESS),
        "subnet_id": ResourceRef(first.resource),
    }
    builder.add(NAT_GATEWAY, {**ids, "tags": tags})


def _add_routes(builder: ModuleBuilder, model: StackModel) -> None:
    for table, kind in ((PUBLIC_ROUTE_TABLE, "public"), (PRIVATE_ROUTE_TABLE, "private")):
        tags = {"Name": f"{write_prefix(model)}-{kind}", **list_tags(model)}
        builder.add(table, {"vpc_id": ResourceRef(VPC), "tags": tags})
    builder.add(
        PUBLIC_ROUTE,
        {
            "route_table_id": ResourceRef(PUBLIC_ROUTE_TABLE),
            "destination_cidr_block": _ANYWHERE,
            "gateway_id": ResourceRef(INTERNET_GATEWAY),
        },
        depends_on=[write_address(GATEWAY_ATTACHMENT)],
    )
    builder.add(
        PRIVATE_ROUTE,
        {
            "route_table_id": ResourceRef(PRIVATE_ROUTE_TABLE),
            "destination_cidr_block": _ANYWHERE,
            "nat_gateway_id": ResourceRef(NAT_GATEWAY),
        },
    )
    tables = [ResourceRef(PUBLIC_ROUTE_TABLE), ResourceRef(PRIVATE_ROUTE_TABLE)]
    builder.add(
        S3_ENDPOINT,
        {
            "vpc_id": ResourceRef(VPC),
            "vpc_endpoint_type": "Gateway",
            "service_name": join_text("com.amazonaws.", Fact.REGION, ".s3"),
            "route_table_ids": tables,
        },
    )


def add_security_group(builder: ModuleBuilder, model: StackModel) -> None:
    """Add the security group of the runner: nothing comes in."""
    egress: list[Node] = [
        {
            "protocol": rule["protocol"],
            "from_port": rule["port"],
            "to_port": rule["port"],
            "cidr_blocks": [rule["to"]],
            "description": rule["about"],
            **_NO_SOURCES,
        }
        for rule in list_egress()
    ]
    tags = {
        "Name": f"{write_prefix(model)}-runner",
        "network.nuon.co/domain": "runner",
        **list_network_tags(model),
        **list_guarded_tags(model),
    }
    group: dict[str, Node] = {
        "description": SECURITY_GROUP_ABOUT,
        "vpc_id": get_vpc(),
        "egress": egress,
    }
    builder.add(SECURITY_GROUP, {**group, "tags": tags})
