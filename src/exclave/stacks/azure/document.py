"""The document that a Stack writes for its runner: what it made and what the customer chose.

It holds no secret. What the customer filled in and what the vendor's own templates return stands in
it as base64, so that no quote in it can break the JSON.
"""

from collections.abc import Mapping

from exclave import __version__
from exclave.domain.stacks import RoleKind
from exclave.stacks.azure.names import (
    CERTIFICATES,
    SEAL,
    write_input_name,
    write_secret_name,
    write_secret_url,
)
from exclave.stacks.azure.network import (
    get_network_id,
    get_network_name,
    get_subnet_names,
    get_subnets,
)
from exclave.stacks.azure.parameters import BREAK_GLASS_END, build_input_parameter, name_switch
from exclave.stacks.azure.references import (
    Base64,
    Body,
    Fact,
    Node,
    ParameterKind,
    ParameterRef,
    ResourceRef,
    Text,
    When,
    join_text,
)
from exclave.stacks.azure.resources import (
    HAS_CERTIFICATES,
    SECRET_VAULT,
    get_client,
    name_identity,
    name_runner_identity,
)
from exclave.stacks.digest import digest_model
from exclave.stacks.model import StackModel

FORMAT = 1
NestedOutputs = Mapping[str, Mapping[str, Text]]


def build_stack_document(model: StackModel, nested: NestedOutputs, log: Text = "") -> Body:
    """Return the document; `nested` are the outputs of the vendor's own templates.

    `log` is where the runner posts the lines of its log.
    """
    return {
        "format": FORMAT,
        "install": model.install_id,
        "generator": __version__,
        "digest": digest_model(model),
        "bundle": {
            "version": model.program.version,
            "x86_64": model.program.x86_64,
            "aarch64": model.program.aarch64,
        },
        "enabled": ParameterRef("runnerEnabled", ParameterKind.FLAG),
        "mode": ParameterRef("runnerMode"),
        "updates": ParameterRef("runnerUpdates"),
        "proxy": ParameterRef("proxyUrl"),
        "mirror": ParameterRef("mirrorUrl"),
        # Only the boot script reads it: the runner's own TLS is made before it knows the document.
        "ca_bundle": When(HAS_CERTIFICATES, write_secret_url(Fact.RUNNER_VAULT, CERTIFICATES), ""),
        "seal": write_secret_url(Fact.RUNNER_VAULT, SEAL),
        "log": log,
        "outputs": build_outputs(model),
        "roles": {
            role.name: ParameterRef(name_switch(role), ParameterKind.FLAG) for role in model.roles
        },
        "role_ends": {
            role.name: ParameterRef(BREAK_GLASS_END)
            for role in model.list_roles(RoleKind.BREAK_GLASS)
        },
        "role_references": {
            role.name: get_client(name_identity(model, role)) for role in model.roles
        },
        "secrets": {
            secret.name: write_secret_url(Fact.SECRET_VAULT, write_secret_name(secret))
            for secret in model.secrets
        },
        "inputs_base64": {
            item.name: Base64(build_input_parameter(item).reference)
            for item in model.inputs
            if not item.sensitive
        },
        "input_secrets": {
            item.name: write_secret_url(Fact.SECRET_VAULT, write_input_name(item))
            for item in model.inputs
            if item.sensitive
        },
        "nested_outputs_base64": {
            name: {output: Base64(value) for output, value in outputs.items()}
            for name, outputs in nested.items()
        },
    }


def build_outputs(model: StackModel) -> Body:
    """Return what the texts of the app read as outputs of the Stack.

    A role that is switched off keeps its identity here: `roles` says whether it has its rights.
    """
    outputs: dict[str, Node] = {
        "region": Fact.LOCATION,
        "subscription_id": Fact.SUBSCRIPTION,
        "subscription_tenant_id": Fact.TENANT,
        "resource_group_id": Fact.GROUP_ID,
        "resource_group_name": Fact.GROUP,
        "resource_group_location": Fact.GROUP_LOCATION,
        "network_id": get_network_id(model),
        "network_name": get_network_name(model),
        "private_subnet_ids": get_subnets(model, "private"),
        "private_subnet_names": get_subnet_names("private"),
        "public_subnet_ids": get_subnets(model, "public"),
        "public_subnet_names": get_subnet_names("public"),
        "key_vault_id": ResourceRef(SECRET_VAULT),
        "key_vault_name": Fact.SECRET_VAULT,
        "runner_identity_id": ResourceRef(name_runner_identity(model)),
    }
    for role in model.roles:
        prefix = str(role.kind) if role.kind in _STANDARD else role.key
        outputs[f"{prefix}_identity_client_id"] = get_client(name_identity(model, role))
    if has_registry(model):
        url = join_text(Fact.REGISTRY, Fact.REGISTRY_DOMAIN)
        repository = f"exclave/{model.install_id}".lower().replace("_", "-")
        outputs["registry"] = {"url": url, "repository": repository}
    return outputs


_STANDARD = (RoleKind.PROVISION, RoleKind.MAINTENANCE, RoleKind.DEPROVISION)


def has_registry(model: StackModel) -> bool:
    """Return whether the app reads a registry for its images from the Stack."""
    return any(name.split(".", 1)[0] == "registry" for name in model.wanted_outputs)
