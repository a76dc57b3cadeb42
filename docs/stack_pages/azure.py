# ruff: noqa: INP001 - programs beside the pages they write, not a package
"""The tables of the page about the Stack in Azure, read off its template and its rights."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from docs.stack_pages.example import build_example
from exclave.domain.stacks import Cloud
from exclave.stacks.azure.arm.template import build_template
from exclave.stacks.azure.built_in_roles import list_role_names
from exclave.stacks.azure.parameters import StackParameter, list_parameters
from exclave.stacks.azure.references import Resource
from exclave.stacks.azure.resources import SECRET_WRITER
from exclave.stacks.azure.roles import Assignment, list_assignments

MODEL = build_example(Cloud.AZURE, "westeurope", wanted_outputs=("registry",))
PURPOSE = {
    "Microsoft.Authorization/roleAssignments": "what each identity may do; none while stopped",
    "Microsoft.Authorization/roleDefinitions": "the right to store secrets; actions of the app's"
    " roles, one definition each",
    "Microsoft.Compute/virtualMachineScaleSets": "keeps one machine, none while stopped: Ubuntu"
    " 24.04, trusted launch, encrypted disk",
    "Microsoft.ContainerRegistry/registries": "copies of the app's images; only for apps that read"
    " it",
    "Microsoft.KeyVault/vaults": "one for the document and the seal, one for the app's secrets",
    "Microsoft.KeyVault/vaults/secrets": "the document, certificates, secrets and sensitive inputs",
    "Microsoft.ManagedIdentity/userAssignedIdentities": "the runner's own identity, and one for"
    " each role",
    "Microsoft.Resources/deployments": "the runner's log: a workspace of Log Analytics with one"
    " table, and the rule by which lines get there",
    "Microsoft.Network/natGateways": "lets private subnets reach out, and nothing in",
    "Microsoft.Network/networkSecurityGroups": "nothing comes in; out go HTTPS and all within the"
    " network",
    "Microsoft.Network/publicIPAddresses": "the address from which the internet is reached",
    "Microsoft.Network/virtualNetworks": "a private and a public subnet, and the runner's own, if"
    " you name none of yours",
}
_LONG = 60
_CONDITIONS = {
    "Enabled": "`runnerEnabled`",
    "Full": "`runnerEnabled`, `runnerMode` = `full`",
    "PlanOnly": "`runnerEnabled`, `runnerMode` = `plan-only`",
}


def list_tables() -> Mapping[str, Iterable[str]]:
    """Return the rows of each table by its placeholder in `azure.txt`."""
    template: Any = build_template(MODEL)
    return {
        "RESOURCES": _write_resources(template["resources"]),
        "RIGHTS": map(_write_right, list_assignments(MODEL)),
        "PARAMETERS": map(_write_parameter, list_parameters(MODEL)),
    }


def _write_resources(resources: list[Mapping[str, Any]]) -> Iterator[str]:
    types = [body["type"] for body in resources]
    for name in sorted(set(types)):
        yield f"| `{name}` | {types.count(name)} | {PURPOSE[name]} |"


def _write_right(given: Assignment) -> str:
    scope = f"`{given.scope.name}`" if given.scope else "the resource group"
    conditions = ", ".join(_CONDITIONS.get(name, f"`{name}`") for name in given.resource.conditions)
    return f"| `{given.identity.name}` | {_name_granted(given)} | {scope} | {conditions} |"


def _name_granted(given: Assignment) -> str:
    if isinstance(given.granted, Resource):
        is_writer = given.granted == SECRET_WRITER
        return "store secrets" if is_writer else "the actions of the role"
    return f"`{list_role_names()[given.granted]}`"


def _write_parameter(parameter: StackParameter) -> str:
    default = "required" if parameter.default is None else _write_code(parameter.default)
    about = parameter.about or parameter.label
    return f"| `{parameter.name}` | `{parameter.variable}` | {default} | {about} |"


def _write_code(text: str) -> str:
    short = text if len(text) < _LONG else "a key that nobody has the private key of"
    return f"`{json.dumps(short)[1:-1]}`" if text == short and text else short
