"""Deletion of parts of a network in the emulated CloudFormation, which forgets them."""

from collections.abc import Callable
from typing import Any

from moto.ec2.models import ec2_backends
from moto.ec2.models.elastic_ip_addresses import ElasticAddress
from moto.ec2.models.nat_gateways import NatGateway
from moto.ec2.models.route_tables import Route, RouteTable
from moto.ec2.models.security_groups import SecurityGroup
from moto.ec2.models.subnets import SubnetRouteTableAssociation

Delete = Callable[[Any, str], None]


def complete_networks() -> None:
    """Let a stack that is deleted take its network along."""
    model: Any = SubnetRouteTableAssociation
    model.create_from_cloudformation_json = classmethod(_associate)
    _let_delete(Route, lambda _backend, _name: None)  # it goes with its table
    _let_delete(RouteTable, _delete_table)
    _let_delete(SecurityGroup, lambda backend, name: backend.delete_security_group(group_id=name))
    _let_delete(NatGateway, lambda backend, name: backend.delete_nat_gateway(name))
    _let_delete(ElasticAddress, _release)


def _associate(
    cls: Any, /, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **kwargs: Any
) -> Any:  # fmt: skip
    """Associate a subnet with its table, and not only in a list beside it."""
    del resource_name, kwargs
    ids = cloudformation_json["Properties"]
    backend = ec2_backends[account_id][region_name]
    backend.associate_route_table(ids["RouteTableId"], subnet_id=ids["SubnetId"])
    return cls(ids["RouteTableId"], ids["SubnetId"])


def _let_delete(model: Any, delete: Delete) -> None:
    def delete_from_template(
        cls: Any, /, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
    ) -> None:
        del cls, cloudformation_json
        delete(ec2_backends[account_id][region_name], resource_name)

    model.delete_from_cloudformation_json = classmethod(delete_from_template)
    model.delete = property(_refuse)  # the emulation prefers a method of this name


def _refuse(_: Any) -> None:
    raise AttributeError("delete")


def _delete_table(backend: Any, name: str) -> None:
    table = backend.route_tables[name]
    for association in table.all_associations_ids - {table.main_association_id}:
        backend.disassociate_route_table(association)
    backend.delete_route_table(name)


def _release(backend: Any, name: str) -> None:
    backend.release_address(address=name)
