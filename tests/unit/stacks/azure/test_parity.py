"""All forms make the same things: resource by resource, parameter by parameter, right by right."""

import json
from typing import Any

import pytest

from exclave.stacks.azure.arm.template import build_group_template, build_template
from exclave.stacks.azure.bicep import write_bicep
from exclave.stacks.azure.resources import TWINS
from exclave.stacks.azure.stack import AzureStack
from exclave.stacks.azure.terraform.module import write_files
from exclave.stacks.model import StackModel
from exclave.stacks.naming import write_snake
from tests.support.azure_stacks import FULL, VARIANTS
from tests.support.bicep import parse_bicep

PARTS = {
    "azurerm_subnet": "a part of the network there",
    "azurerm_subnet_nat_gateway_association": "a property of the subnet there",
    "azurerm_subnet_network_security_group_association": "a property of the subnet there",
    "azurerm_nat_gateway_public_ip_association": "a property of the gateway there",
    "azurerm_resource_group": "around the template there",
}
"""What Terraform has as resources of their own."""
OF_APPLIER = {"appliers_runner_vault", "appliers_secret_vault"}
"""Rights that only Terraform's provider needs."""


def read_module(model: StackModel) -> dict[str, Any]:
    """Return the blocks of all files of the Terraform form by kind."""
    merged: dict[str, Any] = {}
    for text in write_files(model).values():
        for kind, blocks in json.loads(text).items():
            for type_, named in blocks.items():
                if kind in ("resource", "data"):
                    merged.setdefault(kind, {}).setdefault(type_, {}).update(named)
                else:
                    merged.setdefault(kind, {})[type_] = named
    return merged


def list_terraform(module: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (type_, name)
        for type_, named in module["resource"].items()
        if type_ not in PARTS
        for name in named
        if name not in OF_APPLIER
    }


def list_template(template: Any) -> set[tuple[str, str]]:
    return {(TWINS[body["type"]], write_snake(body["comments"])) for body in template["resources"]}


def name_variable(parameter: str) -> str:
    return write_snake(parameter.replace("GiB", "Gib"))


@pytest.mark.parametrize("variant", VARIANTS)
def test_both_forms_have_the_same_resources_under_the_same_names(variant: str) -> None:
    template, module = build_group_template(VARIANTS[variant]), read_module(VARIANTS[variant])

    assert list_terraform(module) == list_template(template)


@pytest.mark.parametrize("variant", VARIANTS)
def test_both_forms_have_the_same_conditions(variant: str) -> None:
    template: Any = build_group_template(VARIANTS[variant])
    module = read_module(VARIANTS[variant])

    for body in template["resources"]:
        other = module["resource"][TWINS[body["type"]]][write_snake(body["comments"])]
        ours = body.get("condition", "")
        names = {part.split("'")[1] for part in ours.split("(") if "'" in part}
        used = other.get("count", "").removeprefix("${(").partition(")")[0]
        theirs = {part.partition(".")[2] for part in used.split(" && ") if part}
        assert theirs == {write_snake(name) for name in names}, body["comments"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_forms_ask_for_the_same_values(variant: str) -> None:
    template: Any = build_template(VARIANTS[variant])
    variables = read_module(VARIANTS[variant])["variable"]
    declared = template["parameters"]

    versions = {f"{name}_version" for name, body in variables.items() if body.get("ephemeral")}
    names = {name_variable(name) for name in declared} | {"resource_group_name"}
    assert set(variables) - versions == names
    required = {name_variable(n) for n, body in declared.items() if "defaultValue" not in body}
    group = set() if "resourceGroupName" in declared else {"resource_group_name"}
    assert {name for name, body in variables.items() if "default" not in body} == required | group
    secret = {name_variable(n) for n, body in declared.items() if body["type"] == "securestring"}
    hidden = {name for name, body in variables.items() if body.get("sensitive")}
    assert secret - hidden <= {"enrolment_code"}
    assert hidden <= secret


@pytest.mark.parametrize("variant", VARIANTS)
def test_bicep_has_the_same_parameters_as_the_template_that_it_includes(variant: str) -> None:
    template: Any = build_template(VARIANTS[variant])
    bicep = parse_bicep(write_bicep(VARIANTS[variant]))

    assert list(bicep.parameters) == list(template["parameters"])
    for name, parameter in bicep.parameters.items():
        declared = dict(template["parameters"][name])
        about = declared.pop("metadata")["description"]
        default = declared.get("defaultValue")
        if isinstance(default, str) and default.startswith("[["):
            declared["defaultValue"] = default[1:]
        assert parameter.describe() == declared, name
        assert parameter.description == about
    (module,) = bicep.modules.values()
    assert module.path == "./azuredeploy.json"
    assert module.params == {name: name for name in template["parameters"]}
    assert set(bicep.outputs) == set(template["outputs"])
    whole = "subscriptionDeploymentTemplate" in template["$schema"]
    assert bicep.scope == ("subscription" if whole else "resourceGroup")
    assert module.name == f"exclave-{FULL.install_id}-stack"


def test_the_boot_script_is_the_same_in_both_forms() -> None:
    template: Any = build_group_template(FULL)
    script = read_module(FULL)["locals"]["boot_script"]

    for name in ("bootScript1", "bootScript2"):
        assert template["variables"][name] in script.replace("$${", "${")


def test_the_document_has_the_same_keys_in_both_forms() -> None:
    template: Any = build_group_template(FULL)
    document = read_module(FULL)["locals"]["document"]
    (stack,) = [b for b in template["resources"] if b["comments"] == "StackDocument"]

    early = set(template["variables"]["document"])
    assert early | {"outputs", "role_references", "log"} == set(document)
    for key in document["outputs"]:
        late = f"'{key}'" in stack["properties"]["value"]
        assert late or key in template["variables"]["outputs"], key


def test_the_files_of_all_forms_lie_in_one_folder() -> None:
    files = {file.name: file.form for file in AzureStack().render(FULL).files}

    assert list(files)[:3] == ["azuredeploy.json", "azuredeploy.parameters.json", "exclave.bicep"]
    assert set(files.values()) == set(AzureStack.forms)
