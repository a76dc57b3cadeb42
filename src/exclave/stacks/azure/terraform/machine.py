"""The runner's machine in Terraform: a scale set of one."""

from exclave.stacks.azure.boot import build_boot_script
from exclave.stacks.azure.machine import ADMIN, DISK, DISK_CACHE
from exclave.stacks.azure.machine_images import OFFER, PUBLISHER
from exclave.stacks.azure.names import write_name
from exclave.stacks.azure.network import get_runner_subnet
from exclave.stacks.azure.references import (
    Native,
    Node,
    ParameterKind,
    ParameterRef,
    ResourceRef,
    When,
)
from exclave.stacks.azure.resources import (
    ENABLED,
    STACK_DOCUMENT,
    list_identities,
    name_machine,
    name_security_group,
)
from exclave.stacks.azure.terraform.builder import ModuleBuilder
from exclave.stacks.azure.terraform.expressions import write_address, write_value
from exclave.stacks.azure.terraform.network import place
from exclave.stacks.model import StackModel

_WAY_OUT = (
    "azurerm_nat_gateway_public_ip_association.nat_gateway_address",
    "azurerm_subnet_nat_gateway_association.runner_subnet",
)
"""Without these the machine would start before it can reach anything."""


def add_machine(builder: ModuleBuilder, model: StackModel) -> None:
    """Add the scale set, with all identities of the Stack."""
    builder.add_local("boot_script", write_value(build_boot_script(model)))
    identities: list[Node] = [ResourceRef(identity) for identity in list_identities(model)]
    arguments: dict[str, Node] = {
        **place(model, write_name(model, "runner")),
        "sku": ParameterRef("vmSize"),
        "instances": When(ENABLED, 1, 0),
        "identity": [{"type": "UserAssigned", "identity_ids": identities}],
        "overprovision": False,
        "single_placement_group": True,
        "upgrade_mode": "Manual",
        "secure_boot_enabled": True,
        "vtpm_enabled": True,
        "encryption_at_host_enabled": ParameterRef("encryptionAtHost", ParameterKind.FLAG),
        "computer_name_prefix": ADMIN,
        "admin_username": ADMIN,
        "admin_ssh_key": [{"username": ADMIN, "public_key": ParameterRef("sshPublicKey")}],
        "disable_password_authentication": True,
        "provision_vm_agent": True,
        "custom_data": Native("base64encode(local.boot_script)"),
        "boot_diagnostics": [{}],
        **_write_storage(),
        "network_interface": [_write_interface(model)],
    }
    needed = [*_WAY_OUT, write_address(STACK_DOCUMENT)]
    builder.add(name_machine(model), arguments, depends_on=needed)


def _write_storage() -> dict[str, Node]:
    image: dict[str, Node] = {
        "publisher": PUBLISHER,
        "offer": OFFER,
        "sku": ParameterRef("imageSku"),
        "version": "latest",
    }
    disk: dict[str, Node] = {
        "caching": DISK_CACHE,
        "storage_account_type": DISK,
        "disk_size_gb": ParameterRef("diskGiB", ParameterKind.NUMBER),
        "disk_encryption_set_id": When("HasDiskKey", ParameterRef("diskEncryptionSetId")),
    }
    return {"source_image_reference": [image], "os_disk": [disk]}


def _write_interface(model: StackModel) -> Node:
    address: dict[str, Node] = {
        "name": "ip",
        "primary": True,
        "subnet_id": get_runner_subnet(model),
    }
    return {
        "name": "nic",
        "primary": True,
        "network_security_group_id": ResourceRef(name_security_group(model)),
        "ip_configuration": [address],
    }
