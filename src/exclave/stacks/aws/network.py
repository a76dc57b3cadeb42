"""The network that a Stack makes where the customer names none."""

from collections.abc import Mapping
from dataclasses import dataclass

from exclave.stacks.aws.names import list_network_tags, write_prefix
from exclave.stacks.aws.references import Node, ParameterRef, Resource, ResourceRef, When
from exclave.stacks.aws.resources import NEW_VPC, ROUTES, RUNNER_SUBNET, SUBNET, VPC
from exclave.stacks.model import StackModel

PIECES = 8
"""Into how many pieces at least the addresses of the VPC are cut."""
PIECE_BITS = 12
"""How many bits of an address a piece leaves to its machines: a /20."""
ZONES = 3
TWO_ZONES = frozenset({"us-west-1"})
"""Regions that offer a new account two zones only."""
HTTPS = 443
SECURITY_GROUP_ABOUT = "Exclave runner: no way in; out by HTTPS, and to the app in the VPC"


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet: which piece of the VPC's addresses it has, and in which zone it lies."""

    resource: Resource
    routes: Resource
    kind: str
    """`public`, `private` or `runner`."""
    piece: int
    zone: int
    tags: Mapping[str, str]

    @property
    def is_public(self) -> bool:
        """Whether its way out is the internet gateway; the others go by NAT."""
        return self.kind == "public"


def list_subnets(model: StackModel) -> tuple[Subnet, ...]:
    """Return the subnets: a public and a private one in each zone, and the runner's own."""
    letters = "ABC"[: count_zones(model)]
    return (
        *(_build_subnet(model, "public", letter, 0) for letter in letters),
        *(_build_subnet(model, "private", letter, ZONES) for letter in letters),
        _build_runner_subnet(model),
    )


def count_zones(model: StackModel) -> int:
    """Return over how many zones of the region the subnets are spread."""
    return ZONES - 1 if model.account.region in TWO_ZONES else ZONES


def get_vpc() -> When:
    """Return the id of the VPC, new or existing."""
    return When(NEW_VPC, ResourceRef(VPC), ParameterRef("VpcId"))


def get_runner_subnet() -> When:
    """Return the id of the runner's subnet, new or existing."""
    return When(NEW_VPC, ResourceRef(RUNNER_SUBNET), ParameterRef("RunnerSubnetId"))


def list_egress() -> tuple[Mapping[str, Node], ...]:
    """Return what the machine may reach: HTTPS everywhere, and the app in the VPC."""
    return (
        {"protocol": "tcp", "port": HTTPS, "to": "0.0.0.0/0", "about": "HTTPS"},
        {"protocol": "-1", "port": 0, "to": ParameterRef("VpcCidr"), "about": "the app in the VPC"},
    )


def _build_subnet(model: StackModel, kind: str, letter: str, first: int) -> Subnet:
    zone = "ABC".index(letter)
    name = f"{kind.title()}Subnet{letter}"
    is_public = kind == "public"
    tags = {
        "visibility": kind,
        "network.nuon.co/domain": "public" if is_public else "internal",
        "kubernetes.io/role/elb" if is_public else "kubernetes.io/role/internal-elb": "1",
        f"kubernetes.io/cluster/{model.install_id}": "shared",
    }
    return Subnet(
        resource=Resource(SUBNET, name, NEW_VPC),
        routes=Resource(ROUTES, f"RoutesOf{name}", NEW_VPC),
        kind=kind,
        piece=first + zone,
        zone=zone,
        tags=_complete_tags(model, f"{kind}-{letter.lower()}", tags),
    )


def _build_runner_subnet(model: StackModel) -> Subnet:
    tags = {"visibility": "private", "network.nuon.co/domain": "runner"}
    return Subnet(
        resource=RUNNER_SUBNET,
        routes=Resource(ROUTES, "RoutesOfRunnerSubnet", NEW_VPC),
        kind="runner",
        piece=2 * ZONES,
        zone=0,
        tags=_complete_tags(model, "runner", tags),
    )


def _complete_tags(model: StackModel, name: str, tags: Mapping[str, str]) -> Mapping[str, str]:
    return {"Name": f"{write_prefix(model)}-{name}", **tags, **list_network_tags(model)}
