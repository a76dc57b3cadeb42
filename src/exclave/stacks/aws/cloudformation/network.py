"""The network and the runner's security group in CloudFormation."""

from exclave.base.json_values import JsonObject
from exclave.stacks.aws.cloudformation.builder import TemplateBuilder, write_tags
from exclave.stacks.aws.names import (
    list_guarded_tags,
    list_network_tags,
    list_tags,
    write_prefix,
)
from exclave.stacks.aws.network import (
    PIECE_BITS,
    PIECES,
    SECURITY_GROUP_ABOUT,
    Subnet,
    get_vpc,
    list_egress,
    list_subnets,
)
from exclave.stacks.aws.references import (
    Fact,
    Native,
    Node,
    ParameterRef,
    Resource,
    ResourceRef,
    join_text,
)
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
from exclave.stacks.model import StackModel

_ANYWHERE = "0.0.0.0/0"
_CIDR = ParameterRef("VpcCidr")


def add_network(builder: TemplateBuilder, model: StackModel) -> None:
    """Add a VPC with subnets and a way out; all of it exists only if no VPC is named."""
    builder.add(
        VPC,
        {
            "CidrBlock": _CIDR,
            "EnableDnsSupport": True,
            "EnableDnsHostnames": True,
            "Tags": _name(model, **list_network_tags(model)),
        },
    )
    for subnet in list_subnets(model):
        _add_subnet(builder, subnet)
    _add_gateways(builder, model)
    _add_routes(builder, model)


def _add_subnet(builder: TemplateBuilder, subnet: Subnet) -> None:
    pieces: JsonObject = {"Fn::Cidr": [{"Ref": "VpcCidr"}, PIECES, PIECE_BITS]}
    builder.add(
        subnet.resource,
        {
            "VpcId": ResourceRef(VPC),
            "CidrBlock": Native({"Fn::Select": [subnet.piece, pieces]}),
            "AvailabilityZone": Native({"Fn::Select": [subnet.zone, {"Fn::GetAZs": ""}]}),
            "MapPublicIpOnLaunch": False,
            "Tags": write_tags(subnet.tags),
        },
    )
    table = PUBLIC_ROUTE_TABLE if subnet.is_public else PRIVATE_ROUTE_TABLE
    ids = {"RouteTableId": ResourceRef(table), "SubnetId": ResourceRef(subnet.resource)}
    builder.add(subnet.routes, ids)


def _add_gateways(builder: TemplateBuilder, model: StackModel) -> None:
    tags = _name(model, **list_tags(model))
    builder.add(INTERNET_GATEWAY, {"Tags": tags})
    builder.add(
        GATEWAY_ATTACHMENT,
        {"VpcId": ResourceRef(VPC), "InternetGatewayId": ResourceRef(INTERNET_GATEWAY)},
    )
    address = {"Domain": "vpc", "Tags": tags}
    builder.add(NAT_ADDRESS, address, DependsOn=GATEWAY_ATTACHMENT.name)
    first = next(subnet for subnet in list_subnets(model) if subnet.is_public)
    ids = {
        "AllocationId": ResourceRef(NAT_ADDRESS),
        "SubnetId": ResourceRef(first.resource),
    }
    builder.add(NAT_GATEWAY, {**ids, "Tags": tags})


def _add_routes(builder: TemplateBuilder, model: StackModel) -> None:
    for table, kind in ((PUBLIC_ROUTE_TABLE, "public"), (PRIVATE_ROUTE_TABLE, "private")):
        tags = write_tags({"Name": f"{write_prefix(model)}-{kind}", **list_tags(model)})
        builder.add(table, {"VpcId": ResourceRef(VPC), "Tags": tags})
    public = {"GatewayId": ResourceRef(INTERNET_GATEWAY)}
    _add_way_out(builder, PUBLIC_ROUTE, PUBLIC_ROUTE_TABLE, public)
    private = {"NatGatewayId": ResourceRef(NAT_GATEWAY)}
    _add_way_out(builder, PRIVATE_ROUTE, PRIVATE_ROUTE_TABLE, private)
    builder.add(
        S3_ENDPOINT,
        {
            "VpcId": ResourceRef(VPC),
            "VpcEndpointType": "Gateway",
            "ServiceName": join_text("com.amazonaws.", Fact.REGION, ".s3"),
            "RouteTableIds": [ResourceRef(PUBLIC_ROUTE_TABLE), ResourceRef(PRIVATE_ROUTE_TABLE)],
        },
    )


def _add_way_out(
    builder: TemplateBuilder, route: Resource, table: Resource, to: dict[str, ResourceRef]
) -> None:
    properties: dict[str, Node] = {
        "RouteTableId": ResourceRef(table),
        "DestinationCidrBlock": _ANYWHERE,
        **to,
    }
    depends = {"DependsOn": GATEWAY_ATTACHMENT.name} if route is PUBLIC_ROUTE else {}
    builder.add(route, properties, **depends)


def add_security_group(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the security group of the runner: nothing comes in."""
    egress = [
        {
            "IpProtocol": rule["protocol"],
            "CidrIp": rule["to"],
            "Description": rule["about"],
            **({"FromPort": rule["port"], "ToPort": rule["port"]} if rule["port"] else {}),
        }
        for rule in list_egress()
    ]
    tags = {
        "Name": f"{write_prefix(model)}-runner",
        "network.nuon.co/domain": "runner",
        **list_network_tags(model),
        **list_guarded_tags(model),
    }
    builder.add(
        SECURITY_GROUP,
        {
            "GroupDescription": SECURITY_GROUP_ABOUT,
            "VpcId": get_vpc(),
            "SecurityGroupEgress": egress,
            "Tags": write_tags(tags),
        },
    )


def _name(model: StackModel, **tags: str) -> Node:
    return write_tags({"Name": write_prefix(model), **tags})
