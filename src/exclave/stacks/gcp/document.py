"""The document that a Stack writes for its runner: what it made and what the customer chose.

It holds no secret. What the customer filled in and what modules of the vendor return stands in it
as base64, as in the Stacks of other clouds.
"""

from collections.abc import Mapping
from typing import Final

from exclave import __version__
from exclave.base.json_values import Json, JsonObject
from exclave.domain.stacks import RoleKind
from exclave.stacks.digest import digest_model
from exclave.stacks.gcp.accounts import name_account, needs_nodes
from exclave.stacks.gcp.expressions import PROJECT, REGION, write_account, write_secret, write_text
from exclave.stacks.gcp.names import NODES, RUNNER, name_input, name_secret
from exclave.stacks.gcp.network import list_network_outputs
from exclave.stacks.gcp.registry import describe_registry, has_registry
from exclave.stacks.gcp.secrets import SEAL
from exclave.stacks.gcp.variables import build_input_variable, name_switch
from exclave.stacks.model import StackModel
from exclave.stacks.terraform.text import escape

FORMAT: Final = 1
_STANDARD: Final = (RoleKind.PROVISION, RoleKind.MAINTENANCE, RoleKind.DEPROVISION)
_MAPS: Final = {
    RoleKind.BREAK_GLASS: "break_glass_sa_emails",
    RoleKind.CUSTOM: "custom_sa_emails",
}


def build_document(model: StackModel, nested: Mapping[str, str]) -> JsonObject:
    """Return the document; `nested` are the outputs of the vendor's modules as expressions."""
    return {
        "format": FORMAT,
        "outputs": build_outputs(model),
        "install": escape(model.install_id),
        "generator": __version__,
        "digest": digest_model(model),
        "bundle": {
            "version": model.program.version,
            "x86_64": model.program.x86_64,
            "aarch64": model.program.aarch64,
        },
        "enabled": "${tostring(var.runner_enabled)}",
        "mode": "${var.runner_mode}",
        "updates": "${var.runner_updates}",
        "proxy": "${var.proxy_url}",
        "mirror": "${var.mirror_url}",
        # Only the boot script reads it: the runner's own TLS is made before it knows the document.
        "ca_bundle": "${var.ca_bundle}",
        "seal": write_secret(SEAL),
        "log": f"projects/{PROJECT}/logs/exclave-{escape(model.install_id)}",
        "roles": {
            escape(role.name): f"${{tostring(var.{name_switch(role)})}}" for role in model.roles
        },
        "role_ends": {
            escape(role.name): "${var.break_glass_until}"
            for role in model.list_roles(RoleKind.BREAK_GLASS)
        },
        "role_references": {
            escape(role.name): write_account(name_account(role)) for role in model.roles
        },
        "secrets": {
            escape(secret.name): write_secret(name_secret(secret)) for secret in model.secrets
        },
        "inputs_base64": _list_inputs(model),
        "input_secrets": {
            escape(item.name): write_secret(name_input(item))
            for item in model.inputs
            if item.sensitive
        },
        "nested_outputs_base64": {escape(name): value for name, value in nested.items()},
    }


def build_outputs(model: StackModel) -> JsonObject:
    """Return what the texts of the app read as outputs of the Stack.

    A role that is switched off keeps its e-mail here: `roles` says whether it may be used.
    """
    emails = {role.key: write_account(name_account(role)) for role in model.roles}
    outputs: dict[str, Json] = {
        "project_id": PROJECT,
        "region": REGION,
        **list_network_outputs(),
        "runner_service_account_email": write_account(RUNNER),
    }
    for role in model.roles:
        if role.kind in _STANDARD:
            outputs[f"{role.kind}_sa_email"] = emails[role.key]
    for kind, name in _MAPS.items():
        outputs[name] = {role.key: emails[role.key] for role in model.list_roles(kind)}
    if needs_nodes(model):
        outputs["gke_node_pool_sa_email"] = write_account(NODES)
    if has_registry(model):
        outputs["registry"] = describe_registry()
    return outputs


def _list_inputs(model: StackModel) -> JsonObject:
    values: dict[str, Json] = {}
    for item in model.inputs:
        if not item.sensitive:
            variable = build_input_variable(item)
            text = write_text(variable.name, variable.kind)
            values[escape(item.name)] = f"${{base64encode({text})}}"
    return values
