"""The report of permissions: every statement in it is recomputed from the policies."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.base.json_values import JsonObject
from exclave.domain.stacks import Cloud, RoleKind
from exclave.stacks.aws.roles import plan_roles
from exclave.stacks.model import (
    InputModel,
    NestedModel,
    PolicyModel,
    RoleModel,
    SecretModel,
    StackModel,
)
from exclave.stacks.reporting.aws_actions import expand_action, load_actions
from exclave.stacks.reporting.aws_topics import DATA, WIDENING
from exclave.stacks.reporting.egress import Destination
from exclave.stacks.reporting.permissions import build_report, read_all_rights
from exclave.stacks.reporting.permissions_json import write_json
from exclave.stacks.reporting.permissions_text import write_markdown
from exclave.stacks.reporting.rights import Level, Rights
from tests.unit.stacks.models_kit import APPS, build_app

BASE = build_app(APPS / "acme-aws").model


def make_model(*roles: RoleModel, cloud: Cloud = Cloud.AWS, **values: Any) -> StackModel:
    return replace(BASE, cloud=cloud, roles=roles, **values)


def make_role(*policies: PolicyModel, name: str = "deploy", **values: Any) -> RoleModel:
    return RoleModel(name, RoleKind.CUSTOM, name, name.title(), policies=policies, **values)


def allow(*actions: str, **more: Any) -> PolicyModel:
    statement = {"Effect": "Allow", "Action": [*actions], "Resource": "*", **more}
    return PolicyModel("p", document={"Version": "2012-10-17", "Statement": [statement]})


def read(*policies: PolicyModel, **values: Any) -> Rights:
    return read_all_rights(make_model(make_role(*policies, **values)))[0]


def test_the_table_knows_the_actions_of_aws_with_their_levels() -> None:
    table = load_actions()

    assert len(table.levels) > 17_000
    assert table.levels["s3:GetObject"] is Level.READ
    assert table.levels["iam:AttachRolePolicy"] is Level.PERMISSIONS
    assert table.titles["eks"] == "Amazon Elastic Kubernetes Service"


def test_actions_that_the_report_asks_for_exist() -> None:
    named = {action for topic in (*DATA, *WIDENING) for action in topic.actions}

    assert named - load_actions().everything == set()


@pytest.mark.parametrize(
    ("pattern", "some", "none"),
    [
        ("s3:GetObject", "s3:GetObject", "s3:GetObjectAcl"),
        ("S3:getobject*", "s3:GetObjectAcl", "s3:PutObject"),
        ("s3:?etObject", "s3:GetObject", "s3:PutObjectAcl"),
        ("*:Describe*", "ec2:DescribeInstances", "ec2:RunInstances"),
        ("*", "iam:PassRole", ""),
    ],
)
def test_patterns_mean_what_they_mean_in_iam(pattern: str, some: str, none: str) -> None:
    assert some in expand_action(pattern)
    assert none not in expand_action(pattern)


@pytest.mark.parametrize("pattern", ["", "s3:[GP]etObject", "nothing:*", "s3:Get", "s3"])
def test_what_is_no_action_means_none(pattern: str) -> None:
    assert expand_action(pattern) == frozenset()


def test_a_pattern_that_was_written_to_be_slow_is_not() -> None:
    assert expand_action("*" + "a*" * 40 + ":b") == frozenset()


@given(st.text(alphabet="s3:GetOb*?[]()^$.\\", max_size=12))
def test_any_pattern_expands_to_known_actions(pattern: str) -> None:
    assert expand_action(pattern) <= load_actions().everything


def test_counts_are_by_service_and_level() -> None:
    rights = read(allow("s3:GetObject", "s3:PutObject", "ec2:DescribeInstances"))

    assert [(item.name, dict(item.counts)) for item in rights.services] == [
        ("ec2", {Level.LIST: 1}),
        ("s3", {Level.READ: 1, Level.WRITE: 1}),
    ]
    assert rights.data == (
        "read objects in buckets (s3:GetObject)",
        "change or delete objects in buckets (s3:PutObject)",
    )
    assert (rights.widening, rights.notes, rights.is_everything) == ((), (), False)


def test_the_page_says_in_how_many_services_a_role_acts() -> None:
    report = build_report(make_model(make_role(allow("sqs:*")), make_role(allow("s3:*", "sqs:*"))))

    page = write_markdown(report)

    assert "It may act in 1 service: `sqs`." in page
    assert "It may act in 2 services: `s3`, `sqs`." in page


def test_a_boundary_takes_away_what_it_does_not_have() -> None:
    boundary = allow("s3:*").document

    rights = read(allow("s3:GetObject", "ec2:*"), boundary=boundary)

    assert rights.actions == {"s3:GetObject"}
    assert rights.notes == ("Its boundary takes away some of what its policies allow.",)


def test_denials_without_conditions_take_away_and_others_are_noted() -> None:
    firm = allow("s3:PutObject", Effect="Deny")
    soft = allow("s3:GetObject", Effect="Deny", Condition={"Bool": {"x": "true"}})

    rights = read(allow("s3:GetObject", "s3:PutObject"), firm, soft)

    assert rights.actions == {"s3:GetObject"}
    assert rights.notes == ("Some actions are denied for certain resources or under conditions.",)


def test_all_but_some_actions_are_all_the_others() -> None:
    policy = allow()
    document: JsonObject = {
        "Version": "2012-10-17",
        "Statement": {"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"},
    }

    rights = read(replace(policy, document=document))

    assert "s3:GetObject" in rights.actions
    assert not any(action.startswith("iam:") for action in rights.actions)


def test_the_guard_denies_lasting_credentials_unless_a_role_names_them_in_full() -> None:
    general, named = make_role(allow("iam:*")), make_role(allow("iam:CreateUser"), name="named")

    alone = read_all_rights(make_model(general))[0]
    both = read_all_rights(make_model(general, named))[0]

    assert "iam:CreateUser" not in alone.actions
    # One guard is on all roles, so what it does not deny to one it denies to none.
    assert "iam:CreateUser" in both.actions
    assert both.widening[0] == "make credentials that outlive the Stack (iam:CreateUser)"


@pytest.mark.parametrize(
    ("kind", "wanted", "actions"),
    [
        (RoleKind.PROVISION, (), {"secretsmanager:GetSecretValue"}),
        (RoleKind.MAINTENANCE, (), {"secretsmanager:GetSecretValue"}),
        (RoleKind.MAINTENANCE, ("registry.url",), {"ecr:PutImage", "kms:Decrypt"}),
        (RoleKind.DEPROVISION, ("registry",), set()),
        (RoleKind.CUSTOM, (), set()),
    ],
)
def test_what_the_stack_itself_lets_a_role_do_is_part_of_the_report(
    kind: RoleKind, wanted: tuple[str, ...], actions: set[str]
) -> None:
    role = replace(make_role(), kind=kind)
    model = make_model(role, secrets=(SecretModel("key"),), wanted_outputs=wanted)

    (rights,) = read_all_rights(model)

    assert actions <= rights.actions
    assert bool(rights.notes) == bool(rights.actions) == bool(actions)


def test_no_role_may_do_more_than_the_policies_of_the_template_say() -> None:
    """The report and the emitter list the same actions for roles without wildcards."""
    role = replace(make_role(allow("s3:GetObject")), kind=RoleKind.MAINTENANCE)
    model = make_model(role, secrets=(SecretModel("key"),), wanted_outputs=("registry",))
    (plan,) = plan_roles(model)
    text = json.dumps([policy.document for policy in plan.inline], default=str)

    (rights,) = read_all_rights(model)

    assert all(action in text for action in rights.actions)


def test_an_administrator_may_do_everything_but_change_the_organization() -> None:
    rights = read(PolicyModel(managed="AdministratorAccess"))

    assert rights.is_everything
    assert not any(action.startswith("organizations:") for action in rights.actions)


def test_a_managed_policy_that_only_aws_knows_is_named_as_that() -> None:
    model = make_model(make_role(PolicyModel(managed="AmazonEKSClusterPolicy")))

    text = write_markdown(build_report(model))

    assert "`AmazonEKSClusterPolicy`, whose content only the cloud lists." in text


def test_actions_that_the_table_does_not_have_are_listed() -> None:
    assert read(allow("s3:GetObject", "s3:Typo", "new:Thing")).unknown == ("new:Thing", "s3:Typo")


def test_roles_of_gcp_are_read_by_name_and_permissions_by_verb() -> None:
    policies = (
        PolicyModel("a", gcp_role="roles/storage.admin"),
        PolicyModel("b", gcp_role="roles/iam.serviceAccountUser"),
        PolicyModel("c", gcp_role="roles/custom.thing"),
        PolicyModel("d", gcp_permissions=("storage.objects.get", "storage.buckets.setIamPolicy")),
    )

    (rights,) = read_all_rights(make_model(make_role(*policies), cloud=Cloud.GCP))

    assert [grant.meaning for grant in rights.named] == [
        "by its name: all of storage, or of a part of it",
        "run things as any service account of the project",
        "",
    ]
    assert dict(rights.services[0].counts) == {Level.READ: 1, Level.PERMISSIONS: 1}
    assert rights.data == ("read objects in buckets (storage.objects.get)",)
    assert rights.widening == (
        "run things as any service account of the project",
        "change who may use certain resources (storage.buckets.setIamPolicy)",
    )


def test_roles_of_azure_are_read_by_name_and_actions_by_their_last_word() -> None:
    policies = (
        PolicyModel("a", azure_roles=("Contributor", "Unknown Role")),
        PolicyModel(
            "b",
            azure_actions=(
                "Microsoft.Storage/*/read",
                "Microsoft.Authorization/roleAssignments/write",
            ),
        ),
    )

    (rights,) = read_all_rights(make_model(make_role(*policies), cloud=Cloud.AZURE))

    assert [grant.meaning for grant in rights.named] == [
        "create, change and delete everything, but not who may use it",
        "",
    ]
    assert [(item.name, dict(item.counts)) for item in rights.services] == [
        ("Microsoft.Authorization", {Level.PERMISSIONS: 1}),
        ("Microsoft.Storage", {Level.READ: 1}),
    ]
    assert rights.widening == (
        "change who may do what (Microsoft.Authorization/roleAssignments/write)",
        "act as every role that is on, by the runner's machine (Contributor)",
    )


def test_the_report_of_azure_says_who_reads_secrets_and_that_nothing_is_denied() -> None:
    role = replace(make_role(), kind=RoleKind.MAINTENANCE)

    text = write_markdown(build_report(make_model(role, cloud=Cloud.AZURE)))

    assert "It may read the values of the app's secrets." in text
    assert "## What no role is denied" in text
    assert "store those that it makes up" in text


@pytest.mark.parametrize(
    ("action", "is_takeover"),
    [
        ("*", True),
        ("Microsoft.Compute/*", True),
        ("Microsoft.Compute/virtualMachineScaleSets/virtualMachines/runCommand/action", True),
        ("Microsoft.ManagedIdentity/userAssignedIdentities/assign/action", True),
        ("Microsoft.Compute/virtualMachines/write", True),
        ("Microsoft.Compute/virtualMachines/read", False),
        ("Microsoft.Storage/*", False),
    ],
)
def test_actions_on_machines_and_identities_reach_every_role(
    action: str, is_takeover: bool
) -> None:
    policy = PolicyModel("a", azure_actions=(action,))

    (rights,) = read_all_rights(make_model(make_role(policy), cloud=Cloud.AZURE))

    assert any("every role that is on" in line for line in rights.widening) == is_takeover


def test_destinations_come_from_the_config() -> None:
    definitions: list[JsonObject] = [
        {"type": "terraform_module", "public_repo": {"repo": "acme/x", "directory": "."}},
        {
            "name": "web",
            "type": "helm_chart",
            "helm_repo": {"repo_url": "https://Charts.example/x"},
        },
        {"name": "img", "type": "container_image", "public": {"image_url": "ghcr.io/acme/web"}},
        {"name": "once", "type": "job", "image_url": "nginx"},
        {"name": "late", "type": "job", "image_url": "{{.nuon.x}}/web"},
        {"name": "git", "type": "helm_chart", "public_repo": {"repo": "git@git.example:a/b.git"}},
        {"name": "own", "type": "helm_chart", "public_repo": {"repo": ".", "directory": "charts"}},
        {"name": "sub", "type": "helm_chart", "public_repo": {"repo": "./charts"}},
    ]

    found = build_report(make_model(nested=()), definitions).destinations

    assert Destination("runners.vendor.example", "machine", "the vendor's control plane") in found
    assert Destination("sts.eu-west-1.amazonaws.com", "machine", "the cloud's API") in found
    assert Destination("registry.terraform.io", "machine", "Terraform and its providers") in found
    assert {(item.host, item.who) for item in found if item.who != "machine"} == {
        ("github.com", "vendor"),
        ("charts.example", "vendor"),
        ("ghcr.io", "vendor"),
        ("docker.io", "cluster"),
        ("git.example", "vendor"),
    }


def test_resources_of_nested_templates_are_counted_and_those_of_iam_stand_out() -> None:
    text = "Resources: {A: {Type: AWS::IAM::Role}, B: {Type: AWS::S3::Bucket}}"
    nested = (
        NestedModel("own", 0, "", text),
        NestedModel("far", 1, "https://b.s3.amazonaws.com/x"),
    )

    page = write_markdown(build_report(make_model(nested=nested)))

    assert "- `own`: 1 **`AWS::IAM::Role`**, 1 `AWS::S3::Bucket`." in page
    assert "- `far`: `https://b.s3.amazonaws.com/x`; read it there" in page


def test_the_json_has_what_the_page_has() -> None:
    report = build_report(BASE)

    document = json.loads(write_json(report))

    assert (document["format"], document["cloud"]) == (1, "aws")
    assert [role["is_everything"] for role in document["roles"]] == [True, True, True, False, True]


TEXTS = st.text(max_size=20) | st.sampled_from(
    ["`", "|", "# x", "<script>", "[a](b)", "\n\n## x", "***", "![x](y)", "&amp;"]
)


@given(name=TEXTS, title=TEXTS, about=TEXTS)
def test_texts_of_the_vendor_are_no_markup(name: str, title: str, about: str) -> None:
    role = replace(make_role(allow("s3:GetObject")), name=name, title=title, description=about)
    model = make_model(
        role,
        app=title,
        secrets=(SecretModel(name, description=about),),
        inputs=(InputModel(name, description=about),),
    )
    plain = replace(
        model,
        app="a",
        roles=(replace(role, name="n", title="t", description=about and "d"),),
        secrets=(SecretModel("n", description="d" if about.strip() else ""),),
        inputs=(InputModel("n", description="d" if about.strip() else ""),),
    )

    page, other = write_markdown(build_report(model)), write_markdown(build_report(plain))

    headings = [line.partition(" ")[0] for line in page.split("\n") if line.startswith("#")]
    assert headings == [
        line.partition(" ")[0] for line in other.split("\n") if line.startswith("#")
    ]
    assert "<script>" not in page.replace("`<script>`", "")
    assert page.count("\n") == other.count("\n")
