"""The network that a Stack makes where the customer names none, and what the machine may reach."""

from dataclasses import dataclass

from exclave.stacks.azure.references import (
    Attribute,
    Before,
    LastPart,
    LastParts,
    ParameterKind,
    ParameterRef,
    ResourceRef,
    When,
)
from exclave.stacks.azure.resources import NEW_NETWORK, get_subnet, name_network
from exclave.stacks.model import StackModel

PIECE_BITS = 20
"""Each subnet is a /20."""
RUNNER_SUBNET = ParameterRef("runnerSubnetId")
_MARK = "/subnets/"


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet: which piece of the network's addresses it has, and how it reaches out."""

    name: str
    piece: int
    has_gateway: bool = True
    is_runner: bool = False


SUBNETS = (
    Subnet("private", 0),
    Subnet("public", 1, has_gateway=False),
    Subnet("runner", 2, is_runner=True),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the security group."""

    name: str
    priority: int
    direction: str
    access: str
    protocol: str = "*"
    port: str = "*"
    to: str = "*"


RULES = (
    Rule("no-way-in", 100, "Inbound", "Deny"),
    Rule("https", 100, "Outbound", "Allow", "Tcp", "443", "Internet"),
    Rule("app", 110, "Outbound", "Allow", to="VirtualNetwork"),
    Rule("nothing-else", 4096, "Outbound", "Deny"),
)


def get_runner_subnet(model: StackModel) -> When:
    """Return the id of the runner's subnet, new or existing."""
    return When(NEW_NETWORK, get_subnet(model, "runner"), RUNNER_SUBNET)


def get_network_id(model: StackModel) -> When:
    """Return the id of the network, new or existing."""
    return When(NEW_NETWORK, ResourceRef(name_network(model)), Before(RUNNER_SUBNET, _MARK))


def get_network_name(model: StackModel) -> When:
    """Return the name of the network, new or existing."""
    network = ResourceRef(name_network(model), Attribute.NAME)
    return When(NEW_NETWORK, network, LastPart(Before(RUNNER_SUBNET, _MARK)))


def get_subnets(model: StackModel, kind: str) -> When:
    """Return the ids of the subnets of a kind, new or existing."""
    given = ParameterRef(f"{kind}SubnetIds", ParameterKind.LIST)
    return When(NEW_NETWORK, get_subnet(model, kind), given)


def get_subnet_names(kind: str) -> When:
    """Return the names of the subnets of a kind, new or existing."""
    given = ParameterRef(f"{kind}SubnetIds", ParameterKind.LIST)
    return When(NEW_NETWORK, kind, LastParts(given))
