"""The Terraform form with real Terraform: it makes what the template makes, in every position."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from exclave.runner.cloud.document import parse_document
from exclave.stacks.azure.arm.template import build_group_template
from exclave.stacks.azure.resources import TWINS
from exclave.stacks.azure.terraform.module import write_files
from exclave.stacks.naming import write_snake
from tests.support.azure_stacks import FULL, GIVEN, NESTED
from tests.support.emulated_azure.deployment import SUBSCRIPTION, Deployment
from tests.support.stand_ins.module import CHANGES, StandInModule

CHOSEN = {
    "resource_group_name": "rg",
    "db_password_secret": GIVEN["dbPasswordSecret"],
    "install_domain": GIVEN["installDomain"],
}
SUBNET = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network"
    "/virtualNetworks/office/subnets/machines"
)
ONLY_HERE = {
    "azurerm_subnet", "azurerm_subnet_nat_gateway_association",
    "azurerm_subnet_network_security_group_association",
    "azurerm_nat_gateway_public_ip_association", "azurerm_client_config", "azurerm_resource_group",
}  # fmt: skip
FREE = (
    "enabled",
    "mode",
    "updates",
    "proxy",
    "mirror",
    "roles",
    "inputs_base64",
    "install",
    "digest",
)
"""What stands in the document without ids that the stand-in makes up."""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> StandInModule:
    provider = {"azurerm": {"features": {}, "subscription_id": SUBSCRIPTION}}
    made = StandInModule(tmp_path_factory.mktemp("azure"), write_files(FULL), provider)
    made.configure(**CHOSEN)
    made.run("init")
    return made


def list_made(module: StandInModule) -> set[tuple[str, str]]:
    addresses = (address.split(".") for address in module.read_resources())
    return {
        (type_, name)
        for type_, name in addresses
        if type_ not in ONLY_HERE and not name.startswith("appliers_")
    }


def list_deployed(**values: Any) -> set[tuple[str, str]]:
    deployment = Deployment(build_group_template(FULL), {**GIVEN, **values})
    return {
        (TWINS[body["type"]], write_snake(body["comments"])) for body in deployment.list_resources()
    }


def read_document(module: StandInModule) -> dict[str, Any]:
    made = module.read_resources()["azurerm_key_vault_secret.stack_document"]
    return dict(json.loads(made["value"]))


def deploy_document(**values: Any) -> dict[str, Any]:
    deployment = Deployment(build_group_template(FULL), {**GIVEN, **values})
    return dict(json.loads(deployment.find("StackDocument")["properties"]["value"]))


def test_the_module_makes_what_the_template_makes(module: StandInModule) -> None:
    module.configure(**CHOSEN)
    module.apply()

    made = module.read_resources()
    ours, theirs = read_document(module), deploy_document()
    assert list_made(module) == list_deployed()
    assert {name: ours[name] for name in FREE} == {name: theirs[name] for name in FREE}
    assert set(ours) == set(theirs)
    assert set(ours["outputs"]) == set(theirs["outputs"])
    assert parse_document(json.dumps(ours)).inputs["domain"] == GIVEN["installDomain"]
    assert len(set(ours["role_references"].values())) == len(FULL.roles)
    assert GIVEN["dbPasswordSecret"] not in json.dumps(made)
    assert "No changes" in module.run("plan", "-detailed-exitcode")


def test_rights_and_rules_are_those_of_the_template(module: StandInModule) -> None:
    module.configure(**CHOSEN)
    module.apply()
    made = module.read_resources()

    compared = 0
    for body in Deployment(build_group_template(FULL), GIVEN).list_resources():
        other = made[f"{TWINS[body['type']]}.{write_snake(body['comments'])}"]
        match body["type"]:
            case "Microsoft.Authorization/roleAssignments":
                assert _read_grant(other) == _read_grant_of_template(body), body["comments"]
            case "Microsoft.Network/networkSecurityGroups":
                rules = body["properties"]["securityRules"]
                assert {(rule["name"], rule["access"]) for rule in other["security_rule"]} == {
                    (rule["name"], rule["properties"]["access"]) for rule in rules
                }
            case "Microsoft.Authorization/roleDefinitions":
                (ours,), (theirs,) = other["permissions"], body["properties"]["permissions"]
                assert ours["actions"] == theirs["actions"]
                assert ours["data_actions"] == theirs["dataActions"]
            case "Microsoft.ManagedIdentity/userAssignedIdentities":
                assert other["name"] == body["name"]
            case _:
                continue
        compared += 1
    assert compared > 20


def _read_grant(made: dict[str, Any]) -> tuple[str, str]:
    """Return what is granted, if it is built in, and on what: a group, a vault, a registry."""
    granted = made["role_definition_id"].rpartition("/")[2]
    kind = made["scope"].partition("/")[0].rpartition("_")[2]
    return ("own" if granted == "role_definition_resource_id" else granted, kind)


def _read_grant_of_template(body: dict[str, Any]) -> tuple[str, str]:
    role = body["properties"]["roleDefinitionId"]
    is_own = "/resourceGroups/" in role
    kinds = {"vaults": "vault", "registries": "registry", "": "group"}
    if "/dataCollectionRules/" in body.get("scope", ""):
        kinds = {"dataCollectionRules": "group"}  # below it, as the stand-in's id begins
    kind = body.get("scope", "").rpartition("/")[0].rpartition("/")[2]
    return ("own" if is_own else role.rpartition("/")[2], kinds[kind])


def test_secrets_are_stored_and_in_no_state(module: StandInModule) -> None:
    module.configure(**CHOSEN)
    module.apply()

    written = {
        entry["values"]["name"]: entry["values"].get("value_wo")
        for entry in module.read_journal()
        if entry["type"] == "azurerm_key_vault_secret" and entry["operation"] == "create"
    }
    state = (module.folder / "terraform.tfstate").read_text()
    assert written["db-password"] == GIVEN["dbPasswordSecret"]
    assert written["smtp-password"] == " "
    assert GIVEN["dbPasswordSecret"] not in state


def test_the_kill_switch_removes_every_right_and_keeps_the_rest(module: StandInModule) -> None:
    module.configure(**CHOSEN, runner_enabled=False)
    module.apply()

    assert list_made(module) == list_deployed(runnerEnabled=False)
    machine = module.read_resources()["azurerm_linux_virtual_machine_scale_set.runner_machine"]
    assert machine["instances"] == 0
    assert read_document(module)["enabled"] == "false"


def test_plan_only_and_an_existing_network_make_less(module: StandInModule) -> None:
    chosen: dict[str, Any] = {"runner_mode": "plan-only", "runner_subnet_id": SUBNET}
    module.configure(**CHOSEN, **chosen, private_subnet_ids=[f"{SUBNET}1", f"{SUBNET}2"])
    module.apply()

    given = {"runnerMode": "plan-only", "runnerSubnetId": SUBNET}
    given |= {"privateSubnetIds": f"{SUBNET}1,{SUBNET}2"}
    assert list_made(module) == list_deployed(**given)
    ours, theirs = read_document(module)["outputs"], deploy_document(**given)["outputs"]
    for name, value in theirs.items():
        if name.startswith(("network", "private", "public")):
            assert ours[name] == value, name


def test_values_that_azure_would_misread_are_refused(module: StandInModule) -> None:
    module.configure(**CHOSEN, proxy_url="https://x'; y", vnet_cidr="10.0.0.0/24", disk_gib=1)

    told = module.run("plan", expected=1)

    assert told.count("Invalid value for variable") == 3


def test_a_stack_for_a_subscription_makes_its_group(tmp_path: Path) -> None:
    provider = {"azurerm": {"features": {}, "subscription_id": SUBSCRIPTION}}
    model = replace(FULL, deployment_scope="subscription")
    module = StandInModule(tmp_path, write_files(model), provider)
    module.configure(**{**CHOSEN, "resource_group_name": "made"})
    module.run("init")
    module.apply()

    group = module.read_resources()["azurerm_resource_group.resource_group"]
    assert (group["name"], group["location"]) == ("made", "westeurope")
    assert read_document(module)["outputs"]["resource_group_name"] == "made"


def test_templates_of_the_vendor_are_a_part_of_a_valid_module(tmp_path: Path) -> None:
    provider = {"azurerm": {"features": {}, "subscription_id": SUBSCRIPTION}}
    module = StandInModule(tmp_path, write_files(NESTED), provider)
    values = {"db_password_secret": "x", "install_zones": ["1", "2"]}
    module.configure(resource_group_name="rg", **values)
    module.run("init")

    planned = module.run("plan", "-detailed-exitcode", expected=CHANGES)

    assert "azurerm_resource_group_template_deployment.nested_topic" in planned
    assert "azurerm_resource_group_template_deployment.nested_more" in planned
