"""The network that a Stack makes where the customer names none, and what the runner may reach."""

from typing import Final

from exclave.base.json_values import Json, JsonObject
from exclave.stacks.gcp.expressions import (
    NETWORK,
    ONLY_NEW,
    PROJECT,
    REGION,
    write_account,
    write_last,
    write_new,
)
from exclave.stacks.gcp.names import RUNNER, write_prefix
from exclave.stacks.model import StackModel
from exclave.stacks.terraform.module_files import ModuleFiles

SUBNETS: Final = ("private", "public", "runner")
"""The subnetworks, each of which gets a sixteenth of the addresses."""
_BITS: Final = 4
_OWN_NETWORK: Final = "${one(google_compute_network.network[*].id)}"
_ALL: Final = "0.0.0.0/0"
_USUAL: Final = 1000
_LAST: Final = 2000


def add_network(files: ModuleFiles, model: StackModel) -> None:
    """Add the network, its subnetworks and its way out, unless the customer has one."""
    name = write_prefix(model)
    _add_locals(files)
    new: JsonObject = {"count": ONLY_NEW, "project": PROJECT}
    apis: Json = ["google_project_service.apis"]
    own: JsonObject = {"name": name, "auto_create_subnetworks": False, "depends_on": apis}
    files.add_block("resource", "google_compute_network", "network", {**new, **own})
    placed: JsonObject = {**new, "region": REGION}
    for index, kind in enumerate(SUBNETS):
        body: JsonObject = {
            **placed,
            "name": f"{name}-{kind}",
            "network": _OWN_NETWORK,
            "ip_cidr_range": f"${{cidrsubnet(var.cidr, {_BITS}, {index})}}",
            "private_ip_google_access": True,
        }
        files.add_block("resource", "google_compute_subnetwork", f"{kind}_subnet", body)
    router: JsonObject = {**placed, "name": name, "network": _OWN_NETWORK}
    files.add_block("resource", "google_compute_router", "router", router)
    nat: JsonObject = {
        **placed,
        "name": name,
        "router": "${one(google_compute_router.router[*].name)}",
        "nat_ip_allocate_option": "AUTO_ONLY",
        "source_subnetwork_ip_ranges_to_nat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
    }
    files.add_block("resource", "google_compute_router_nat", "nat", nat)


def add_firewall(files: ModuleFiles, model: StackModel) -> None:
    """Let the runner out by HTTPS and to the app, and nothing in."""
    https: JsonObject = {"protocol": "tcp", "ports": ["443"]}
    every: JsonObject = {"protocol": "all"}
    out: JsonObject = {"direction": "EGRESS", "priority": _USUAL}
    rules: dict[str, JsonObject] = {
        "https": {**out, "destination_ranges": [_ALL], "allow": [https]},
        "app": {**out, "destination_ranges": ["${var.cidr}"], "allow": [every]},
        "nothing_else": {
            **out, "priority": _LAST, "destination_ranges": [_ALL], "deny": [every],
        },
        "no_way_in": {
            "direction": "INGRESS", "priority": 0, "source_ranges": [_ALL], "deny": [every],
        },
    }  # fmt: skip
    for what, body in rules.items():
        rule: JsonObject = {
            "project": "${local.network_project}",
            "name": f"{write_prefix(model)}-{what.replace('_', '-')}",
            "network": NETWORK,
            "target_service_accounts": [write_account(RUNNER)],
            **body,
        }
        files.add_block("resource", "google_compute_firewall", f"runner_{what}", rule)


def list_network_outputs() -> JsonObject:
    """Return what the app reads of the network, new or existing."""
    first = f'try({write_last("var.private_subnetworks[0]")}, "")'
    names = f'join(",", [for subnet in var.private_subnetworks : {write_last("subnet")}])'
    private = "google_compute_subnetwork.private_subnet[*].name"
    return {
        "network_name": "${local.network_name}",
        "network_id": NETWORK,
        "private_subnet_name": write_new(private, first),
        "private_subnet_names": write_new(private, names),
        "public_subnet_name": write_new("google_compute_subnetwork.public_subnet[*].name", '""'),
        "runner_subnet_name": f"${{{write_last('local.runner_subnetwork')}}}",
    }


def _add_locals(files: ModuleFiles) -> None:
    network, subnet = "google_compute_network.network", "google_compute_subnetwork.runner_subnet"
    project = 'try(regex("projects/([^/]+)/", var.network)[0], var.project_id)'
    for name, value in (
        ("new_network", '${var.network == ""}'),
        ("network", write_new(f"{network}[*].id", "var.network")),
        ("network_name", write_new(f"{network}[*].name", write_last("var.network"))),
        # A shared network is in another project, and its rules with it.
        ("network_project", f"${{local.new_network ? var.project_id : {project}}}"),
        ("runner_subnetwork", write_new(f"{subnet}[*].id", "var.runner_subnetwork")),
    ):
        files.add_local(name, value)
