"""The runner's machine in a template: a scale set of one."""

from exclave.base.json_values import Json
from exclave.stacks.azure.arm.builder import TemplateBuilder
from exclave.stacks.azure.arm.expressions import quote, write_expression, write_id
from exclave.stacks.azure.boot import build_boot_script
from exclave.stacks.azure.machine import ADMIN, DISK, DISK_CACHE
from exclave.stacks.azure.machine_images import OFFER, PUBLISHER
from exclave.stacks.azure.names import list_tags
from exclave.stacks.azure.network import get_runner_subnet
from exclave.stacks.azure.references import (
    Fact,
    Native,
    Node,
    ParameterKind,
    ParameterRef,
    ResourceRef,
    When,
    is_text,
)
from exclave.stacks.azure.resources import (
    ENABLED,
    RUNNER_VAULT,
    list_identities,
    name_machine,
    name_network,
    name_security_group,
)
from exclave.stacks.model import StackModel


def add_machine(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the scale set, with all identities of the Stack."""
    identities = list_identities(model)
    group = name_security_group(model)
    body: dict[str, Node] = {
        "location": Fact.LOCATION,
        "tags": list_tags(model),
        "sku": {
            "name": ParameterRef("vmSize"),
            "tier": "Standard",
            "capacity": When(ENABLED, 1, 0),
        },
        "properties": {
            "orchestrationMode": "Uniform",
            "overprovision": False,
            "singlePlacementGroup": True,
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "osProfile": _write_system(builder, model),
                "storageProfile": _write_storage(),
                "securityProfile": {
                    "securityType": "TrustedLaunch",
                    "uefiSettings": {"secureBootEnabled": True, "vTpmEnabled": True},
                    "encryptionAtHost": ParameterRef("encryptionAtHost", ParameterKind.FLAG),
                },
                "diagnosticsProfile": {"bootDiagnostics": {"enabled": True}},
                "networkProfile": _write_interface(model),
            },
        },
    }
    ids: dict[str, Json] = {f"[{write_id(identity)}]": {} for identity in identities}
    after = (group, RUNNER_VAULT, name_network(model), *identities)
    builder.add(name_machine(model), body, after=after)
    machine = builder.resources[-1]
    if isinstance(machine, dict):
        machine["identity"] = {"type": "UserAssigned", "userAssignedIdentities": ids}


def _write_system(builder: TemplateBuilder, model: StackModel) -> Node:
    keys: list[Node] = [
        {"path": f"/home/{ADMIN}/.ssh/authorized_keys", "keyData": ParameterRef("sshPublicKey")}
    ]
    linux: dict[str, Node] = {
        "disablePasswordAuthentication": True,
        "provisionVMAgent": True,
        "ssh": {"publicKeys": keys},
    }
    return {
        "computerNamePrefix": ADMIN,
        "adminUsername": ADMIN,
        "customData": _write_boot_script(builder, model),
        "linuxConfiguration": linux,
    }


def _write_boot_script(builder: TemplateBuilder, model: StackModel) -> Native:
    """Return the boot script; its long texts are variables, since expressions have a limit."""
    pieces: list[str] = []
    text = ""
    for part in build_boot_script(model).parts:
        if is_text(part):
            text += part
            continue
        pieces += [_keep_text(builder, text), write_expression(part)]
        text = ""
    pieces.append(_keep_text(builder, text))
    return Native(f"base64(concat({', '.join(pieces)}))")


def _keep_text(builder: TemplateBuilder, text: str) -> str:
    if len(text) <= _SHORT:
        return quote(text)
    name = f"bootScript{sum(key.startswith('bootScript') for key in builder.variables) + 1}"
    builder.add_variable(name, text)
    return f"variables('{name}')"


_SHORT = 100


def _write_storage() -> Node:
    own_key = Native(
        "if(variables('hasDiskKey'), createObject('id', parameters('diskEncryptionSetId')), null())"
    )
    image: dict[str, Node] = {
        "publisher": PUBLISHER,
        "offer": OFFER,
        "sku": ParameterRef("imageSku"),
        "version": "latest",
    }
    disk: dict[str, Node] = {
        "createOption": "FromImage",
        "caching": DISK_CACHE,
        "diskSizeGB": ParameterRef("diskGiB", ParameterKind.NUMBER),
        "managedDisk": {"storageAccountType": DISK, "diskEncryptionSet": own_key},
    }
    return {"imageReference": image, "osDisk": disk}


def _write_interface(model: StackModel) -> Node:
    address: dict[str, Node] = {"primary": True, "subnet": {"id": get_runner_subnet(model)}}
    card: dict[str, Node] = {
        "primary": True,
        "networkSecurityGroup": {"id": ResourceRef(name_security_group(model))},
        "ipConfigurations": [{"name": "ip", "properties": address}],
    }
    return {"networkInterfaceConfigurations": [{"name": "nic", "properties": card}]}
