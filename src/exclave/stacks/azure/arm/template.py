"""The template of a Stack: for a resource group, or for a subscription in which it makes one."""

import json

from exclave import __version__
from exclave.base.json_values import Json, JsonObject, object_or_empty
from exclave.stacks.azure.arm.builder import TemplateBuilder
from exclave.stacks.azure.arm.expressions import write_words
from exclave.stacks.azure.arm.identities import add_assignments, add_definitions, add_identities
from exclave.stacks.azure.arm.log import add_log
from exclave.stacks.azure.arm.machine import add_machine
from exclave.stacks.azure.arm.nested import add_nested
from exclave.stacks.azure.arm.network import add_network
from exclave.stacks.azure.arm.parameters import add_parameter, add_variables, write_parameter
from exclave.stacks.azure.arm.vaults import (
    add_document,
    add_registry,
    add_vaults,
    write_outputs,
)
from exclave.stacks.azure.document import build_outputs
from exclave.stacks.azure.names import list_tags, write_name
from exclave.stacks.azure.nested import plan_nested
from exclave.stacks.azure.parameters import is_subscription, list_parameters
from exclave.stacks.azure.resources import DEPLOYMENT, GROUP, name_log
from exclave.stacks.digest import digest_model
from exclave.stacks.model import StackModel

_SCHEMAS = "https://schema.management.azure.com/schemas"
OF_GROUP = f"{_SCHEMAS}/2019-04-01/deploymentTemplate.json#"
OF_SUBSCRIPTION = f"{_SCHEMAS}/2018-05-01/subscriptionDeploymentTemplate.json#"
_VERSION = "1.0.0.0"
_NAME = "resourceGroupName"


def build_template(model: StackModel) -> JsonObject:
    """Return the template of a model."""
    inner = build_group_template(model)
    return _wrap(model, inner) if is_subscription(model) else inner


def build_group_template(model: StackModel) -> JsonObject:
    """Return the template for a resource group."""
    builder = TemplateBuilder()
    for parameter in list_parameters(model):
        add_parameter(builder, parameter)
    add_variables(builder, model)
    add_network(builder, model)
    add_identities(builder, model)
    add_definitions(builder, model)
    add_vaults(builder, model)
    add_registry(builder, model)
    add_assignments(builder, model)
    nested = add_nested(builder, model)
    log = add_log(builder, model)
    deployed = [plan.resource for plan in plan_nested(model)]
    add_document(builder, model, nested, log, name_log(model), *deployed)
    add_machine(builder, model)
    builder.add_output("outputs", f"[{write_outputs(build_outputs(model))}]", "object")
    builder.add_output("runnerVault", "[variables('runnerVault')]")
    return {
        "$schema": OF_GROUP,
        "contentVersion": _VERSION,
        "metadata": _write_facts(model),
        "parameters": builder.parameters,
        "variables": builder.variables,
        "resources": builder.resources,
        "outputs": builder.outputs,
    }


def write_template(template: JsonObject) -> str:
    """Return the template as text."""
    return json.dumps(template, indent=1) + "\n"


def _write_facts(model: StackModel) -> JsonObject:
    about = model.description or f"The Exclave runner of {model.app} for {model.install}"
    facts: JsonObject = {
        "install": model.install_id,
        "generator": __version__,
        "digest": digest_model(model),
    }
    return {"description": write_words(about), "exclave": facts}


def _wrap(model: StackModel, inner: JsonObject) -> JsonObject:
    """Return a template that makes a resource group, and applies another one to it."""
    parameters: dict[str, Json] = {
        item.name: write_parameter(item) for item in list_parameters(model)
    }
    given: dict[str, Json] = {
        name: {"value": f"[parameters('{name}')]"} for name in object_or_empty(inner["parameters"])
    }
    group: JsonObject = {
        "type": GROUP,
        "apiVersion": "2024-03-01",
        "name": f"[parameters('{_NAME}')]",
        "comments": "ResourceGroup",
        "location": "[parameters('location')]",
        "tags": dict(list_tags(model)),
    }
    deployment: JsonObject = {
        "type": DEPLOYMENT,
        "apiVersion": "2024-03-01",
        "name": write_name(model, "group"),
        "comments": "Content of the resource group",
        "resourceGroup": f"[parameters('{_NAME}')]",
        "dependsOn": [f"[subscriptionResourceId('{GROUP}', parameters('{_NAME}'))]"],
        "properties": {
            "mode": "Incremental",
            "expressionEvaluationOptions": {"scope": "inner"},
            "parameters": given,
            "template": inner,
        },
    }
    made = f"reference('{write_name(model, 'group')}', '2024-03-01')"
    return {
        "$schema": OF_SUBSCRIPTION,
        "contentVersion": _VERSION,
        "metadata": _write_facts(model),
        "parameters": parameters,
        "resources": [group, deployment],
        "outputs": {
            "outputs": {"type": "object", "value": f"[{made}.outputs.outputs.value]"},
            "runnerVault": {"type": "string", "value": f"[{made}.outputs.runnerVault.value]"},
        },
    }
