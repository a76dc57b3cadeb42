"""The life of a stack on an emulated AWS: create, choose, stop, start, delete."""

import base64
import json
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from exclave.runner.cloud.document import parse_document
from exclave.stacks.aws.cloudformation.template import build_template
from tests.support.aws_stacks import GIVEN, INSTALL, READ_BUCKETS, EmulatedStack, make_model
from tests.support.aws_variants import VARIANTS
from tests.support.cloudformation import Resolver, TemplateRefused
from tests.support.emulated_aws.server import ACCOUNT, REGION, EmulatedAws

RUNNER = f"exclave-{INSTALL}-runner"


def list_roles(aws: EmulatedAws) -> set[str]:
    return {role["RoleName"] for role in aws.connect("iam").list_roles()["Roles"]}


def list_guard(aws: EmulatedAws) -> list[str]:
    """List the rules of the guard that are in force."""
    iam = aws.connect("iam")
    arn = f"arn:aws:iam::{ACCOUNT}:policy/exclave-{INSTALL}-guard"
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    found = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
    document = json.loads(found) if isinstance(found, str) else found
    return [statement["Sid"] for statement in document["Statement"]]


def read_group(aws: EmulatedAws) -> tuple[int, int]:
    """Return how many machines the group wants, and how many it has."""
    groups = aws.connect("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    return groups[0]["DesiredCapacity"], len(groups[0]["Instances"])


def read_boundary(aws: EmulatedAws, role: str) -> Any:
    found = aws.connect("iam").get_role(RoleName=role)["Role"].get("PermissionsBoundary", {})
    return found.get("PermissionsBoundaryArn")


def take_role(aws: EmulatedAws, keys: Any, service: str) -> Any:
    """Return a client of a service with the credentials of a session."""
    return boto3.client(
        service,
        endpoint_url=aws.url,
        region_name=REGION,
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
        config=Config(retries={"max_attempts": 1}, proxies={}),
    )


def assume(sts: Any, role: str) -> Any:
    arn = f"arn:aws:iam::{ACCOUNT}:role/{role}"
    return sts.assume_role(RoleArn=arn, RoleSessionName="exclave-exe_1")["Credentials"]


def test_the_document_holds_what_the_stack_made_and_what_the_customer_wrote(
    stack: EmulatedStack,
) -> None:
    document = stack.read_document()

    assert (document["enabled"], document["mode"]) == ("true", "full")
    assert base64.b64decode(document["inputs_base64"]["domain"]).decode() == 'shop."acme".example'
    assert base64.b64decode(document["inputs_base64"]["zones"]) == b"a,b"
    assert document["outputs"]["account_id"] == ACCOUNT
    assert len(document["outputs"]["private_subnets"].split(",")) == 3
    assert stack.read_secret(document["secrets"]["db_password"]) == GIVEN["DbPasswordSecret"]
    assert len(stack.read_secret(document["secrets"]["session_key"])) == 63
    assert len(stack.read_secret(document["seal"])) == 64
    with pytest.raises(ClientError, match="ResourceNotFound"):
        stack.read_secret(document["secrets"]["smtp_password"])


def test_the_runner_reads_the_document_and_finds_every_role_that_is_on(
    stack: EmulatedStack,
) -> None:
    document = parse_document(json.dumps(stack.read_document()))

    on = {name for name, is_on in document.roles.items() if is_on}
    assert document.is_enabled
    assert document.inputs["domain"] == 'shop."acme".example'
    assert set(document.role_references) == set(document.roles)
    assert {document.role_references[name].rpartition("/")[2] for name in on} <= list_roles(
        stack.aws
    )
    assert len(on) >= 3


def test_one_machine_runs_with_the_runners_role_and_the_boot_script(
    stack: EmulatedStack,
) -> None:
    ec2 = stack.aws.connect("ec2")
    data = ec2.describe_launch_template_versions(LaunchTemplateName=RUNNER)[
        "LaunchTemplateVersions"
    ][-1]["LaunchTemplateData"]

    assert read_group(stack.aws) == (1, 1)
    script = base64.b64decode(data["UserData"]).decode()
    compile(script, "boot", "exec")
    assert f"'document': '{stack.outputs['StackDocumentArn']}'" in script
    assert data["IamInstanceProfile"]["Arn"].endswith(RUNNER)


def test_a_stop_acts_in_three_ways_and_a_start_takes_it_back(stack: EmulatedStack) -> None:
    stack.update(RunnerEnabled="false")
    stopped = (list_guard(stack.aws)[0], read_group(stack.aws), stack.read_document()["enabled"])

    stack.update(RunnerEnabled="true")
    started = ("Stopped" in list_guard(stack.aws), read_group(stack.aws)[0])

    assert stopped == ("Stopped", (0, 0), "false")
    assert started == (False, 1)
    assert stack.read_document()["enabled"] == "true"


def test_a_stop_ends_sessions_that_were_issued_before(stack: EmulatedStack) -> None:
    aws = stack.aws
    runner = assume(aws.connect("sts"), RUNNER)
    job = assume(take_role(aws, runner, "sts"), f"{INSTALL}-maintenance")
    aws.check_signatures(on=True)
    take_role(aws, job, "s3").list_buckets()

    aws.check_signatures(on=False)
    stack.update(RunnerEnabled="false")
    aws.check_signatures(on=True)

    with pytest.raises(ClientError, match="AccessDenied"):
        take_role(aws, job, "s3").list_buckets()
    with pytest.raises(ClientError, match="AccessDenied"):
        assume(take_role(aws, runner, "sts"), f"{INSTALL}-maintenance")


def test_the_runner_by_itself_can_do_nothing_in_the_account(stack: EmulatedStack) -> None:
    runner = assume(stack.aws.connect("sts"), RUNNER)
    stack.aws.check_signatures(on=True)

    with pytest.raises(ClientError, match="AccessDenied"):
        take_role(stack.aws, runner, "s3").list_buckets()
    with pytest.raises(ClientError, match="AccessDenied"):
        take_role(stack.aws, runner, "iam").list_roles()


def test_break_glass_is_there_only_while_the_customer_wants_it(stack: EmulatedStack) -> None:
    name = f"{INSTALL}-break-glass-admin"
    before = name in list_roles(stack.aws)

    stack.update(EnableBreakGlassAdminRole="true", BreakGlassUntil="2030-01-01T10:00:00Z")

    role = stack.aws.connect("iam").get_role(RoleName=name)["Role"]
    trust = role["AssumeRolePolicyDocument"]["Statement"][0]["Condition"]
    assert trust["DateLessThan"] == {"aws:CurrentTime": "2030-01-01T10:00:00Z"}
    assert stack.read_document()["roles"][name] == "true"
    stack.update(EnableBreakGlassAdminRole="false")
    assert not before
    assert name not in list_roles(stack.aws)


def test_plan_only_lets_every_role_read_and_nothing_else(stack: EmulatedStack) -> None:
    before = read_boundary(stack.aws, f"{INSTALL}-provision")

    stack.update(RunnerMode="plan-only")

    after = {name: read_boundary(stack.aws, name) for name in list_roles(stack.aws) - {RUNNER}}
    assert before == f"arn:aws:iam::{ACCOUNT}:policy/exclave-{INSTALL}-provision-boundary"
    assert set(after.values()) == {"arn:aws:iam::aws:policy/ReadOnlyAccess"}
    assert stack.read_document()["mode"] == "plan-only"


def test_a_boundary_of_the_customer_is_on_every_role_without_one(aws: EmulatedAws) -> None:
    document = json.dumps(READ_BUCKETS)
    made = aws.connect("iam").create_policy(PolicyName="ours", PolicyDocument=document)
    arn = made["Policy"]["Arn"]

    EmulatedStack(aws, make_model()).create(PermissionsBoundaryArn=arn, RolePath="/vendors/")

    found = {name: read_boundary(aws, name) for name in list_roles(aws)}
    others = set(found) - {f"{INSTALL}-provision"}
    assert {found[name] for name in others} == {arn}
    assert found[f"{INSTALL}-provision"] != arn
    role = aws.connect("iam").get_role(RoleName=RUNNER)["Role"]
    assert role["Arn"] == f"arn:aws:iam::{ACCOUNT}:role/vendors/{RUNNER}"


def test_an_existing_network_is_used_and_none_is_made(aws: EmulatedAws) -> None:
    ec2 = aws.connect("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
    before = len(ec2.describe_vpcs()["Vpcs"])
    stack = EmulatedStack(aws, make_model())

    stack.create(
        VpcId=vpc,
        RunnerSubnetId=subnet,
        PrivateSubnetIds=f"{subnet},{subnet}",
        VpcCidr="10.9.0.0/16",
    )

    outputs = stack.read_document()["outputs"]
    assert len(ec2.describe_vpcs()["Vpcs"]) == before
    assert (outputs["vpc_id"], outputs["runner_subnet"]) == (vpc, subnet)
    assert outputs["private_subnets"] == f"{subnet},{subnet}"
    assert outputs["public_subnets"] == ""


def test_the_vendors_own_template_is_applied_with_the_rest(aws: EmulatedAws) -> None:
    ec2 = aws.connect("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
    stack = EmulatedStack(aws, VARIANTS["nested"])
    stack.values.pop("InstallDomain")

    stack.create(VpcId=vpc, RunnerSubnetId=subnet, InstallZones="a,b")

    document = parse_document(json.dumps(stack.read_document()))
    topics = aws.connect("sns").list_topics()["Topics"]
    assert document.outputs["custom_nested_stacks"] == {
        "topic": {"TopicArn": topics[0]["TopicArn"], "SpareArn": "", "About": 'the "shop"'}
    }


def test_what_is_deleted_leaves_the_seal_and_nothing_else(stack: EmulatedStack) -> None:
    aws = stack.aws

    stack.delete()

    left = [secret["ARN"] for secret in aws.connect("secretsmanager").list_secrets()["SecretList"]]
    assert left == [stack.outputs["SealSecretArn"]]
    assert list_roles(aws) == set()
    assert aws.connect("iam").list_policies(Scope="Local")["Policies"] == []
    assert aws.connect("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"] == []
    assert aws.connect("logs").describe_log_groups()["logGroups"] == []
    assert aws.connect("ecr").describe_repositories()["repositories"] == []
    ec2 = aws.connect("ec2")
    assert [vpc["IsDefault"] for vpc in ec2.describe_vpcs()["Vpcs"]] == [True]
    assert ec2.describe_addresses()["Addresses"] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ProxyUrl", "http://proxy'; rm -rf /"),
        ("VpcId", "vpc-1"),
        ("VpcCidr", "10.0.0.0"),
        ("RunnerEnabled", "maybe"),
        ("LogDays", "2"),
        ("DiskGiB", "5"),
        ("BreakGlassUntil", "tomorrow"),
        ("RolePath", "vendors"),
        ("CaBundleParameter", "ca"),
        ("DbPasswordSecret", ""),
        ("KmsKeyArn", "alias/ours"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_made(name: str, value: str) -> None:
    template = build_template(make_model())

    with pytest.raises(TemplateRefused):
        Resolver(template, {**GIVEN, name: value}).resolve()
