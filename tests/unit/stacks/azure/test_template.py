"""The template of Azure Resource Manager: valid, without secrets, switched by its parameters."""

import ast
import base64
import hashlib
import inspect
import json
import re
from typing import Any

import pytest

from exclave.runner.cloud.document import parse_document
from exclave.runner.cloud.log_stores import AzureLogStore
from exclave.stacks.aws.document import build_stack_document
from exclave.stacks.azure.arm.template import build_group_template, build_template
from exclave.stacks.azure.parameters import NOBODYS_KEY
from exclave.stacks.azure.resources import LOG_RULES
from exclave.stacks.digest import digest_model
from exclave.stacks.model import StackModel
from tests.support.aws_stacks import make_model as make_aws_model
from tests.support.azure_stacks import FULL, GIVEN, INSTALL, NESTED, SMALL, VARIANTS, WHOLE
from tests.support.emulated_azure.deployment import (
    LOGS,
    SUBSCRIPTION,
    TENANT,
    Deployment,
    check_template,
    list_calls,
    list_expressions,
    list_secure,
)
from tests.support.emulated_azure.expressions import parse

NESTED_GIVEN = {"dbPasswordSecret": "x", "installZones": "1,2"}
SUBNET = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network"
    "/virtualNetworks/office/subnets/machines"
)


def deploy(model: StackModel = FULL, **values: Any) -> Deployment:
    given = GIVEN if model is FULL else {}
    return Deployment(build_group_template(model), {**given, **values})


def list_rights(deployment: Deployment) -> list[str]:
    return [
        body["comments"]
        for body in deployment.list_resources()
        if body["type"] == "Microsoft.Authorization/roleAssignments"
    ]


def read_document(deployment: Deployment) -> dict[str, Any]:
    return dict(json.loads(deployment.find("StackDocument")["properties"]["value"]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_azure_would_accept_every_expression(variant: str) -> None:
    check_template(build_group_template(VARIANTS[variant]))


def test_no_secret_is_in_the_document_in_variables_or_in_outputs() -> None:
    template: Any = build_group_template(FULL)
    secure = list_secure(template)
    places = {body["comments"]: body for body in template["resources"]}
    shown = [template["variables"], template["outputs"], places["StackDocument"]]

    used = {
        call.arguments[0]
        for text in list_expressions(shown)
        for call in list_calls(parse(text[1:-1]))
        if call.name == "parameters"
    }

    assert secure == {"dbPasswordSecret", "smtpPasswordSecret", "installApiKey"}
    assert not used & secure


def test_the_runner_understands_the_document() -> None:
    deployment = deploy(installDebug=True, enableBreakGlassAdmin=True)

    document = parse_document(deployment.find("StackDocument")["properties"]["value"])

    vault = deployment.find("SecretVault")["name"]
    assert (document.install, document.digest) == (INSTALL, digest_model(FULL))
    own = deployment.find("RunnerVault")["name"]
    assert document.seal == f"https://{own}.vault.azure.net/secrets/exclave-seal"
    assert document.secrets["db_password"] == f"https://{vault}.vault.azure.net/secrets/db-password"
    assert document.inputs == {
        "domain": GIVEN["installDomain"], "nodes": "3", "zones": "a,b", "debug": "true",
    }  # fmt: skip
    assert document.roles["[reports]"]
    assert document.roles[f"{INSTALL}-break-glass-admin"]
    assert set(document.role_references) == set(document.roles)
    assert len(set(document.role_references.values())) == 5
    outputs = document.outputs
    assert (
        outputs["provision_identity_client_id"] == document.role_references[f"{INSTALL}-provision"]
    )
    assert (outputs["region"], outputs["subscription_tenant_id"]) == ("westeurope", TENANT)
    assert str(outputs["private_subnet_ids"]).endswith("/subnets/private")


def test_the_document_has_the_fields_of_that_in_aws_and_what_roles_are() -> None:
    other = set(build_stack_document(make_aws_model(), {}))

    assert set(read_document(deploy())) == other | {"role_references"}


def test_a_mirror_of_the_customer_is_the_runners() -> None:
    assert read_document(deploy(mirrorUrl="https://mirror.example"))["mirror"] == (
        "https://mirror.example"
    )


def test_the_log_goes_to_a_table_that_only_the_runner_writes() -> None:
    deployment = deploy(logDays=30)
    log = deployment.find_template(deployment.find("RunnerLog")["id"])
    assert log is not None

    check_template(log.template)
    rule = log.find("LogRule")
    url, _, path = read_document(deployment)["log"].partition("/dataCollectionRules/")
    (stream,) = rule["properties"]["streamDeclarations"]
    assert url == f"https://{LOGS}"
    assert path.endswith(f"/streams/{stream}")
    columns = rule["properties"]["streamDeclarations"][stream]["columns"]
    assert columns == log.find("LogTable")["properties"]["schema"]["columns"]
    written = re.findall(r'"(\w+)": ', inspect.getsource(AzureLogStore.write))
    assert [column["name"] for column in columns] == written
    assert log.find("LogWorkspace")["properties"]["retentionInDays"] == 30
    right = deployment.find("RunnerPostsLogAssignment")
    assert right["scope"] == rule["id"]
    assert deployment.find("RunnerLog")["id"] in right["dependsOn"]


def test_outputs_say_what_the_document_says() -> None:
    deployment = deploy()

    assert deployment.read_output("outputs") == read_document(deployment)["outputs"]


def test_the_kill_switch_takes_the_machine_and_every_right_away() -> None:
    stopped = deploy(runnerEnabled=False)

    assert list_rights(stopped) == []
    assert stopped.find("RunnerMachine")["sku"]["capacity"] == 0
    assert read_document(stopped)["enabled"] == "false"
    assert deploy().find("RunnerMachine")["sku"]["capacity"] == 1


def test_plan_only_leaves_reading() -> None:
    rights = list_rights(deploy(runnerMode="plan-only"))

    assert [name for name in rights if not name.startswith("Runner")] == [
        "ProvisionReaderAssignment", "ProvisionSecretsAssignment",
        "MaintenanceReaderAssignment", "MaintenanceSecretsAssignment",
        "DeprovisionReaderAssignment", "ReportReaderAssignment",
    ]  # fmt: skip


def test_a_role_has_its_rights_only_while_it_is_on() -> None:
    off, on = deploy(enableMaintenance=False), deploy(enableBreakGlassAdmin=True)

    assert not [name for name in list_rights(off) if name.startswith("Maintenance")]
    assert "BreakGlassAdminBuiltIn0Assignment" in list_rights(on)
    assert "BreakGlassAdminBuiltIn0Assignment" not in list_rights(deploy())


def test_the_runner_itself_may_use_its_vaults_and_its_log_and_nothing_else() -> None:
    deployment = deploy()
    runner = deployment.find("RunnerIdentity")["name"]
    vaults = {deployment.find(name)["id"] for name in ("RunnerVault", "SecretVault")}

    mine = [
        body
        for body in deployment.list_resources()
        if body["type"] == "Microsoft.Authorization/roleAssignments"
        and body["comments"].startswith("Runner")
    ]
    writer = deployment.find("SecretWriter")

    assert runner == f"exclave-{INSTALL}-runner"
    rule = deployment.resolve(f"[resourceId('{LOG_RULES}', 'exclave-{INSTALL}-log')]")
    assert {body["scope"] for body in mine} == {*vaults, rule}
    granted = {body["properties"]["roleDefinitionId"].rpartition("/")[2] for body in mine}
    assert granted == {
        "4633458b-17de-408a-b874-0445c86b69e6",
        "3913510d-42f4-4e42-8a64-420c390055eb",
        writer["name"],
    }
    assert writer["properties"]["permissions"] == [
        {
            "actions": [],
            "notActions": [],
            "dataActions": ["Microsoft.KeyVault/vaults/secrets/setSecret/action"],
            "notDataActions": [],
        }
    ]


def test_jobs_cannot_read_the_seal() -> None:
    deployment = deploy()
    seal = deployment.find("RunnerVault")["id"]

    for body in deployment.list_resources():
        if body.get("scope") == seal:
            assert body["comments"].startswith("Runner")


def test_actions_of_a_role_are_one_definition() -> None:
    properties = deploy().find("MaintenanceDefinition")["properties"]

    assert properties["permissions"][0]["actions"] == [
        "Microsoft.Storage/*/read", "*/read", "Microsoft.Web/sites/restart/action",
    ]  # fmt: skip
    assert properties["assignableScopes"] == [deploy().group_id]


def test_the_machine_is_closed_encrypted_and_trusted() -> None:
    deployment = deploy()
    machine = deployment.find("RunnerMachine")
    profile = machine["properties"]["virtualMachineProfile"]
    rules = deployment.find("RunnerSecurityGroup")["properties"]["securityRules"]

    security = profile["securityProfile"]
    assert security["uefiSettings"] == {"secureBootEnabled": True, "vTpmEnabled": True}
    assert security["securityType"] == "TrustedLaunch"
    assert "publicIPAddressConfiguration" not in json.dumps(profile)
    card = profile["networkProfile"]["networkInterfaceConfigurations"][0]["properties"]
    assert card["networkSecurityGroup"]["id"] == deployment.find("RunnerSecurityGroup")["id"]
    allowed = [rule["name"] for rule in rules if rule["properties"]["access"] == "Allow"]
    assert allowed == ["https", "app"]
    assert {r["name"] for r in rules if r["properties"]["direction"] == "Inbound"} == {"no-way-in"}
    assert len(machine["identity"]["userAssignedIdentities"]) == 6


def test_a_key_of_the_customer_encrypts_the_disk() -> None:
    with_key = deploy(diskEncryptionSetId="/set")

    def read_disk(deployment: Deployment) -> Any:
        profile = deployment.find("RunnerMachine")["properties"]["virtualMachineProfile"]
        return profile["storageProfile"]["osDisk"]["managedDisk"]["diskEncryptionSet"]

    assert read_disk(with_key) == {"id": "/set"}
    assert read_disk(deploy()) is None


def test_an_existing_network_is_used_as_it_is() -> None:
    existing = deploy(
        runnerSubnetId=SUBNET, privateSubnetIds=f"{SUBNET}1,{SUBNET}2", publicSubnetIds=""
    )
    outputs = read_document(existing)["outputs"]

    types = {body["type"] for body in existing.list_resources()}
    assert not types & {"Microsoft.Network/virtualNetworks", "Microsoft.Network/natGateways"}
    assert outputs["network_name"] == "office"
    assert outputs["network_id"] == SUBNET.partition("/subnets/")[0]
    assert outputs["private_subnet_names"] == "machines1,machines2"
    assert outputs["private_subnet_ids"] == f"{SUBNET}1,{SUBNET}2"
    assert outputs["public_subnet_names"] == ""


def test_the_boot_script_compiles_and_knows_where_to_read() -> None:
    deployment = deploy(SMALL, enrolmentCode="c0de")
    system = deployment.find("RunnerMachine")["properties"]["virtualMachineProfile"]["osProfile"]

    script = base64.b64decode(system["customData"]).decode()
    (facts,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(script).body
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == "BOOT"
    ]

    vault = deployment.find("RunnerVault")["name"]
    identity = deployment.find("RunnerIdentity")
    assert script.startswith("#!/usr/bin/python3\n")
    assert (facts["install"], facts["cloud"], facts["code"]) == (INSTALL, "azure", "c0de")
    assert facts["document"] == f"https://{vault}.vault.azure.net/secrets/exclave-stack"
    assert facts["identity"] == deployment.resolve(
        f"[reference('{identity['id']}', '2024').clientId]"
    )
    assert "code" not in build_group_template(FULL)["parameters"]  # type: ignore[operator]


def test_secrets_that_are_not_given_are_blank_and_generated_ones_are_the_runners() -> None:
    deployment = deploy()

    assert deployment.find("SecretDbPassword")["properties"]["value"] == GIVEN["dbPasswordSecret"]
    assert deployment.find("SecretSmtpPassword")["properties"]["value"] == " "
    names = {body["comments"] for body in deployment.list_resources()}
    assert not names & {"SecretSessionKey", "CaBundle"}
    assert "session_key" in read_document(deployment)["secrets"]


def test_certificates_of_the_customer_are_a_secret_that_the_boot_script_reads() -> None:
    deployment = deploy(caBundle="-----BEGIN CERTIFICATE-----")

    assert read_document(deployment)["ca_bundle"].endswith("/secrets/exclave-ca-bundle")
    assert read_document(deploy())["ca_bundle"] == ""
    assert deployment.find("CaBundle")["properties"]["value"].startswith("-----BEGIN")


def test_templates_of_the_vendor_are_deployments_with_their_own_scope() -> None:
    name = f"exclave-{INSTALL}-nested-0"
    deployment = Deployment(
        build_group_template(NESTED), NESTED_GIVEN, deployed={name: {"topic": 'the "shop"'}}
    )

    inner = deployment.find("NestedTopic")["properties"]
    assert inner["expressionEvaluationOptions"] == {"scope": "inner"}
    assert inner["parameters"] == {"size": {"value": 3}}
    document = parse_document(deployment.find("StackDocument")["properties"]["value"])
    assert document.outputs["custom_nested_stacks"] == {
        "topic": {"topic": 'the "shop"'},
        "more": {},
    }
    machine = deployment.find("RunnerMachine")["properties"]["virtualMachineProfile"]
    assert machine["storageProfile"]["imageReference"]["sku"] == "server-arm64"


def test_a_subscription_template_makes_the_group_and_hands_everything_on() -> None:
    template: Any = build_template(WHOLE)
    group, deployment = template["resources"]

    inner = deployment["properties"]["template"]
    assert inner == build_group_template(WHOLE)
    assert set(deployment["properties"]["parameters"]) == set(inner["parameters"])
    assert set(template["parameters"]) == {*inner["parameters"], "resourceGroupName"}
    for name, body in inner["parameters"].items():
        assert template["parameters"][name] == body
    assert group["name"] == deployment["resourceGroup"] == "[parameters('resourceGroupName')]"
    for text in list_expressions(template):
        parse(text[1:-1])


def test_nobody_has_the_private_key_of_the_default() -> None:
    blob = base64.b64decode(NOBODYS_KEY.split()[1])

    assert blob[:19] == b"\0\0\0\x0bssh-ed25519\0\0\0\x20"
    assert blob[19:] == hashlib.sha256(b"Exclave: no one has the private key, 0").digest()


def test_the_same_model_gives_the_same_bytes() -> None:
    assert json.dumps(build_template(FULL)) == json.dumps(build_template(FULL))
