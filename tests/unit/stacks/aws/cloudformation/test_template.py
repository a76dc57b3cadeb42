"""The CloudFormation template: hardened, complete for the console, and clean for the linter."""

import json
from typing import Any

import pytest
from cfnlint.api import ManualArgs, lint

from exclave.stacks.aws.cloudformation.template import build_template, write_template
from exclave.stacks.model import AccountPin
from tests.support.aws_stacks import INSTALL, make_model
from tests.support.aws_variants import VARIANTS

ONE_REGION = ManualArgs(regions=["eu-west-1"])
"""With all regions, the linter takes minutes."""


def read_resources(**changes: Any) -> Any:
    return build_template(make_model(**changes))["Resources"]


def read_parameters(**changes: Any) -> Any:
    return build_template(make_model(**changes))["Parameters"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_linter_has_nothing_to_say(variant: str) -> None:
    template = write_template(build_template(VARIANTS[variant]))

    found = [(match.rule.id, match.message) for match in lint(template, config=ONE_REGION)]

    assert found == []


def test_the_same_model_gives_the_same_bytes() -> None:
    assert write_template(build_template(make_model())) == write_template(
        build_template(make_model())
    )


def test_every_parameter_has_a_group_and_a_label() -> None:
    template: Any = build_template(make_model())

    interface = template["Metadata"]["AWS::CloudFormation::Interface"]
    grouped = [name for group in interface["ParameterGroups"] for name in group["Parameters"]]
    assert grouped == list(template["Parameters"])
    assert set(interface["ParameterLabels"]) == set(grouped)


def test_the_code_is_asked_for_only_where_the_account_is_not_known_and_may_stand_in_a_link() -> (
    None
):
    unknown = read_parameters(account=AccountPin("eu-west-1"))

    assert "EnrolmentCode" not in read_parameters()
    assert unknown["EnrolmentCode"]["Default"] == ""
    assert "NoEcho" not in unknown["EnrolmentCode"]


def test_a_secret_is_never_echoed_and_has_no_name_in_the_account() -> None:
    parameters, resources = read_parameters(), read_resources()

    assert parameters["DbPasswordSecret"]["NoEcho"] is True
    assert parameters["DbPasswordSecret"]["MinLength"] == 1
    assert "Default" not in parameters["DbPasswordSecret"]
    secrets = [r for r in resources.values() if r["Type"] == "AWS::SecretsManager::Secret"]
    assert not [secret for secret in secrets if "Name" in secret["Properties"]]


def test_only_the_seal_outlives_the_stack() -> None:
    kept = {name for name, body in read_resources().items() if "DeletionPolicy" in body}

    assert kept == {"SealSecret"}


def test_nothing_comes_in_and_only_https_and_the_app_are_reached() -> None:
    group = read_resources()["RunnerSecurityGroup"]["Properties"]

    assert "SecurityGroupIngress" not in group
    assert [
        (rule["IpProtocol"], rule.get("FromPort")) for rule in group["SecurityGroupEgress"]
    ] == [
        ("tcp", 443),
        ("-1", None),
    ]
    assert group["SecurityGroupEgress"][1]["CidrIp"] == {"Ref": "VpcCidr"}


def test_the_machine_is_closed_encrypted_and_takes_the_newest_image() -> None:
    launch = read_resources()["RunnerTemplate"]["Properties"]["LaunchTemplateData"]

    assert launch["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpTokens": "required",
        "HttpPutResponseHopLimit": 1,
        "InstanceMetadataTags": "disabled",
    }
    assert launch["BlockDeviceMappings"][0]["Ebs"]["Encrypted"] is True
    assert launch["ImageId"] == {"Fn::Sub": "resolve:ssm:${ImageId}"}
    assert "KeyName" not in launch


def test_an_arm_machine_gets_an_image_for_it() -> None:
    assert "/arm64/" in read_parameters(instance_type="t4g.medium")["ImageId"]["Default"]
    assert "/amd64/" in read_parameters(instance_type="g4dn.xlarge")["ImageId"]["Default"]


def test_a_region_with_two_zones_gets_two_subnets_of_each_kind() -> None:
    resources = read_resources(account=AccountPin("us-west-1", "123456789012"))

    assert "PrivateSubnetB" in resources
    assert "PrivateSubnetC" not in resources


def test_an_app_that_expects_a_network_asks_for_it() -> None:
    parameters = read_parameters(network_template="https://x/vpc/byo-vpc/stack.yaml")

    assert "Default" not in parameters["VpcId"]
    assert "Default" in read_parameters()["VpcId"]


def test_a_template_of_the_vendor_becomes_a_part_of_this_one() -> None:
    template: Any = build_template(VARIANTS["nested"])

    assert template["Resources"]["NestedTopicTopic"]["Type"] == "AWS::SNS::Topic"
    assert template["Parameters"]["NestedTopicSize"]["Default"] == 3
    interface = template["Metadata"]["AWS::CloudFormation::Interface"]
    assert interface["ParameterGroups"][-1]["Parameters"] == ["NestedTopicSize"]
    text, variables = template["Resources"]["StackDocument"]["Properties"]["SecretString"][
        "Fn::Sub"
    ]
    outputs = json.loads(text)["nested_outputs_base64"]["topic"]
    encoded = variables[outputs["TopicArn"].strip("${}")]
    assert encoded == {"Fn::Base64": {"Ref": "NestedTopicTopic"}}


def test_a_large_role_has_its_policies_beside_it() -> None:
    large = VARIANTS["large"]
    resources: Any = build_template(large)["Resources"]

    role = resources["ProvisionRole"]["Properties"]
    assert {"Ref": "ProvisionPolicy0"} in role["ManagedPolicyArns"]
    assert resources["ProvisionPolicy0"]["Condition"] == "EnableProvisionRole"
    assert [policy["PolicyName"] for policy in role["Policies"]] == ["exclave-secrets"]


def test_every_resource_that_takes_tags_has_the_install() -> None:
    without = {
        name
        for name, body in read_resources().items()
        if INSTALL not in json.dumps(body["Properties"].get("Tags", ""))
    }

    assert {read_resources()[name]["Type"] for name in without} == {
        "AWS::EC2::VPCGatewayAttachment",
        "AWS::EC2::SubnetRouteTableAssociation",
        "AWS::EC2::Route",
        "AWS::EC2::VPCEndpoint",
        "AWS::EC2::LaunchTemplate",
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::InstanceProfile",
    }
