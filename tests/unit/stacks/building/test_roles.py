"""Roles of a model: what they may do, in the form of their cloud, or why that cannot work."""

import json
from typing import Any

import pytest

from exclave.appconfig.model.kinds.permissions import (
    BreakGlassRole,
    NamedPolicy,
    NamedPolicyUse,
    Role,
    RolePolicy,
)
from exclave.domain.stacks import RoleKind
from exclave.stacks.building.model import BuiltModel
from exclave.stacks.building.parts import StackParts
from exclave.stacks.model import PolicyModel, RoleModel
from tests.unit.stacks.models_kit import build_parts, show_findings

STATEMENT = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
DOCUMENT: dict[str, Any] = {"Version": "2012-10-17", "Statement": [STATEMENT]}


def make_role(*policies: dict[str, Any], **values: Any) -> Role:
    return Role(
        **{"type": "custom", "name": "deploy", **values},
        policies=tuple(RolePolicy(**policy) for policy in policies),
    )


def build(*roles: Role, cloud: str = "aws", **parts: Any) -> BuiltModel:
    return build_parts(StackParts(cloud, roles=roles, **parts))


def get_policies(built: BuiltModel) -> tuple[PolicyModel, ...]:
    (role,) = built.model.roles
    return role.policies


def test_a_role_is_rendered_and_its_key_has_no_install_in_it() -> None:
    role = make_role(
        {"name": "deploy", "contents": json.dumps(DOCUMENT)},
        name="{{.nuon.install.id}}-Deploy.All",
        display_name="Deploy {{.nuon.install.name}}",
        permissions_boundary=json.dumps(DOCUMENT),
    )

    built = build(role)

    assert built.findings == ()
    assert built.model.roles == (
        RoleModel(
            key="deploy_all",
            kind=RoleKind.CUSTOM,
            name="ins_01jd0000000000000000000000-Deploy.All",
            title="Deploy acme",
            policies=(PolicyModel("deploy", document=DOCUMENT),),
            boundary=DOCUMENT,
        ),
    )


def test_the_last_of_two_roles_of_a_standard_type_is_taken() -> None:
    allow = {"managed_policy_name": "ReadOnlyAccess"}

    built = build(
        make_role(allow, type="provision", name="first"),
        make_role(allow, type="provision", name="second"),
    )

    assert [(role.key, role.name) for role in built.model.roles] == [("provision", "second")]


def test_roles_for_emergencies_are_off_unless_the_app_says_otherwise() -> None:
    policies = (RolePolicy(managed_policy_name="AdministratorAccess"),)
    emergencies = (
        BreakGlassRole(name="a", policies=policies),
        BreakGlassRole(name="b", policies=policies, enabled_in_stack=True),
    )

    built = build(emergencies=emergencies)

    assert [(role.kind, role.enabled) for role in built.model.roles] == [
        (RoleKind.BREAK_GLASS, False),
        (RoleKind.BREAK_GLASS, True),
    ]


def test_shared_policies_are_written_into_the_roles() -> None:
    role = Role(type="custom", name="a", named_policies=(NamedPolicyUse(name="logs"),))
    shared = (NamedPolicy(name="logs", contents=json.dumps(DOCUMENT)),)

    assert get_policies(build(role, shared=shared)) == (PolicyModel("logs", document=DOCUMENT),)


def test_each_way_to_allow_something_is_a_policy_of_its_own() -> None:
    policy = {"name": "x", "gcp_permissions": ("a.b.get",), "gcp_predefined_role": "roles/viewer"}

    assert get_policies(build(make_role(policy), cloud="gcp")) == (
        PolicyModel("x", gcp_permissions=("a.b.get",)),
        PolicyModel("x-2", gcp_role="roles/viewer"),
    )


def test_policies_without_a_name_get_different_ones() -> None:
    document = json.dumps(DOCUMENT)

    policies = get_policies(
        build(
            make_role({"contents": document}, {"contents": document}, {"managed_policy_name": "A"})
        )
    )

    assert [policy.name for policy in policies] == ["policy-1", "policy-2", "A"]


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ({}, "empty_policy"),
        ({"name": "x"}, "empty_policy"),
        ({"contents": '{"Version": "2012-10-17", "Statement": []}'}, "empty_policy"),
        ({"gcp_predefined_role": "roles/viewer"}, "cloud_mismatch"),
        ({"azure_actions": ("*/read",)}, "cloud_mismatch"),
    ],
)
def test_a_policy_that_allows_nothing_here_is_left_out_with_a_warning(
    policy: dict[str, Any], code: str
) -> None:
    built = build(make_role(policy))

    assert (get_policies(built), built.is_ok) == ((), True)
    assert {item[0] for item in show_findings(built)} == {code, "empty_policy"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not JSON"),
        ("{}", "`Version`"),
        ('{"Version": "2012-10-17"}', "`Statement` is missing"),
        (json.dumps({**DOCUMENT, "Statement": ["x"]}), "not an object"),
        (json.dumps({**DOCUMENT, "Statement": {**STATEMENT, "Effect": "allow"}}), "`Effect`"),
        (json.dumps({**DOCUMENT, "Statement": {**STATEMENT, "Principal": "*"}}), "`Principal`"),
        (json.dumps({**DOCUMENT, "Statement": {"Effect": "Deny", "Action": "*"}}), "`Resource`"),
        (json.dumps({**DOCUMENT, "Statement": {**STATEMENT, "NotAction": "*"}}), "`NotAction`"),
        ("{{ .nuon.sandbox.outputs.policy }}", "cannot be rendered"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_document_that_aws_would_refuse_is_an_error_at_its_place(
    document: str, message: str
) -> None:
    built = build(make_role({"managed_policy_name": "A"}, {"name": "x", "contents": document}))

    (finding,) = built.findings
    assert message in finding.message
    assert (finding.section, finding.name) == ("permissions", "deploy")
    assert finding.at == ("policies", 1, "contents")
    assert not built.is_ok


def test_the_line_of_broken_json_is_known() -> None:
    built = build(make_role({"name": "x", "contents": '{\n"Version": 1,\n}'}))

    position = built.findings[0].position
    assert position is not None
    assert position.line == 3


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ("a", "a", "duplicate_name"),
        ("a-b", "a_b", "duplicate_name"),
        ("provision", "x", ""),
        ("a b", "x", "bad_name"),
        ("ins_01jd0000000000000000000000-", "x", "bad_name"),
    ],
)
def test_names_of_roles_are_unique_and_fit_their_cloud(first: str, second: str, code: str) -> None:
    allow = {"managed_policy_name": "A"}

    built = build(make_role(allow, name=first), make_role(allow, name=second))

    assert {item[0] for item in show_findings(built)} - {code} == set()
    assert built.is_ok == (not code)


def test_a_custom_role_cannot_have_the_key_of_a_standard_one() -> None:
    allow = {"managed_policy_name": "A"}

    built = build(
        make_role(allow, type="provision", name="{{.nuon.install.id}}-p"),
        make_role(allow, name="provision"),
    )

    assert show_findings(built) == [("duplicate_name", "permissions", "provision", ("name",))]


def test_roles_and_boundaries_of_another_cloud_are_errors() -> None:
    role = make_role(
        {"gcp_predefined_role": "roles/viewer"},
        cloud_platform="aws",
        permissions_boundary=json.dumps(DOCUMENT),
    )

    assert show_findings(build(role, cloud="gcp")) == [
        ("cloud_mismatch", "permissions", "deploy", ("cloud_platform",)),
        ("cloud_mismatch", "permissions", "deploy", ("permissions_boundary",)),
    ]


def test_shared_policies_are_for_aws_only() -> None:
    role = make_role({"gcp_predefined_role": "roles/viewer"})
    role = Role(**{**vars(role), "named_policies": (NamedPolicyUse(name="logs"),)})
    shared = (NamedPolicy(name="logs", contents="no JSON"),)

    assert show_findings(build(role, cloud="gcp", shared=shared)) == [
        ("cloud_mismatch", "permissions", "deploy", ("named_policies",))
    ]


def test_a_model_lists_its_roles_by_what_they_are_for() -> None:
    allow = {"managed_policy_name": "A"}

    model = build(
        make_role(allow, name="a"),
        make_role(allow, type="provision", name="p"),
        make_role(allow, name="b"),
    ).model

    assert [role.name for role in model.list_roles(RoleKind.CUSTOM)] == ["a", "b"]
    assert model.list_roles(RoleKind.BREAK_GLASS) == ()
