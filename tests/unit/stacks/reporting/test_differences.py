"""What a new version changes, in words; whatever lets a runner do more is marked."""

from dataclasses import replace
from typing import Any

import pytest

from exclave.domain.stacks import Cloud, RoleKind
from exclave.stacks.base import SigningKey
from exclave.stacks.model import (
    InputModel,
    NestedModel,
    PolicyModel,
    ProgramPins,
    RoleModel,
    SecretModel,
    StackModel,
)
from exclave.stacks.reporting.differences import Change, Kind, compare_models, write_changes
from tests.unit.stacks.models_kit import APPS, build_app

BASE = replace(build_app(APPS / "acme-aws").model, roles=(), secrets=(), inputs=(), nested=())


def allow(*actions: str, **more: Any) -> PolicyModel:
    statement = {"Effect": "Allow", "Action": [*actions], "Resource": "*", **more}
    return PolicyModel("p", document={"Version": "2012-10-17", "Statement": [statement]})


def make_role(*policies: PolicyModel, **values: Any) -> RoleModel:
    return RoleModel("deploy", RoleKind.CUSTOM, "deploy", "Deploy", policies=policies, **values)


def compare(before: dict[str, Any], after: dict[str, Any]) -> tuple[Change, ...]:
    return compare_models(replace(BASE, **before), replace(BASE, **after))


def compare_roles(before: RoleModel, after: RoleModel) -> Change:
    (change,) = compare({"roles": (before,)}, {"roles": (after,)})
    return change


def test_the_same_model_has_no_changes_and_neither_has_a_new_program_or_key() -> None:
    newer = replace(
        BASE, program=ProgramPins("9", "a" * 64, "b" * 64), keys=(SigningKey("k2", "B" * 43),)
    )

    assert compare_models(BASE, newer) == ()
    assert write_changes(()) == "Nothing that you apply changes.\n"


def test_new_and_removed_roles() -> None:
    role = make_role(allow("s3:GetObject"), enabled=False)

    assert compare({}, {"roles": (role,)}) == (
        Change(
            Kind.ADDED,
            "role",
            "deploy",
            ("off until you enable it", "may act in `s3`"),
            is_wider=True,
        ),
    )
    assert compare({"roles": (role,)}, {}) == (Change(Kind.REMOVED, "role", "deploy"),)


def test_actions_added_and_removed() -> None:
    change = compare_roles(
        make_role(allow("s3:GetObject")), make_role(allow("s3:PutObject", "s3:ListBucket"))
    )

    assert change.details == (
        "may also do `s3:ListBucket`, `s3:PutObject`",
        "may no longer do `s3:GetObject`",
        "policies added: `s3:ListBucket`, `s3:PutObject`",
        "policies removed: `s3:GetObject`",
    )
    assert change.is_wider


@pytest.mark.parametrize(
    ("before", "after", "wider", "words"),
    [
        (make_role(enabled=False), make_role(enabled=True), True, "on at first"),
        (make_role(enabled=True), make_role(enabled=False), False, "off at first"),
        (make_role(allow("s3:Get*")), make_role(), False, "may no longer do"),
        (make_role(allow("s3:Get*")), make_role(allow("s3:GetObject")), True, "policies added"),
        (
            make_role(allow("s3:GetObject"), boundary=allow("s3:*").document),
            make_role(allow("s3:GetObject")),
            True,
            "its boundary is gone",
        ),
        (
            make_role(allow("s3:GetObject")),
            make_role(allow("s3:GetObject"), boundary=allow("s3:*").document),
            False,
            "its boundary is new",
        ),
        (
            make_role(allow("s3:GetObject", Resource="arn:aws:s3:::a/*")),
            make_role(allow("s3:GetObject")),
            True,
            "resources or conditions",
        ),
        (
            make_role(allow("s3:*"), allow("s3:Put*", Effect="Deny", Resource="arn:x")),
            make_role(allow("s3:*")),
            True,
            "policies removed: `not s3:Put*`",
        ),
        (
            make_role(PolicyModel(managed="A")),
            make_role(PolicyModel(managed="B")),
            True,
            "policies added: `B`",
        ),
        (make_role(), make_role(description="other"), False, "other texts"),
    ],
)
def test_what_widens_a_role_is_marked(
    before: RoleModel, after: RoleModel, wider: bool, words: str
) -> None:
    change = compare_roles(before, after)

    assert (change.kind, change.is_wider) == (Kind.CHANGED, wider)
    assert words in "; ".join(change.details)


def test_roles_of_other_clouds_are_compared_by_what_they_are_given() -> None:
    before = replace(
        BASE, cloud=Cloud.GCP, roles=(make_role(PolicyModel(gcp_role="roles/viewer")),)
    )
    after = replace(before, roles=(make_role(PolicyModel(gcp_role="roles/editor")),))

    (change,) = compare_models(before, after)

    assert change.details == (
        "policies added: `roles/editor`",
        "policies removed: `roles/viewer`",
    )
    assert change.is_wider


def test_secrets_inputs_and_templates() -> None:
    before: StackModel = replace(
        BASE,
        secrets=(SecretModel("old"), SecretModel("same", required=True)),
        inputs=(InputModel("size", default="1"),),
        nested=(NestedModel("net", 0, "", "a"),),
    )
    after = replace(
        before,
        secrets=(SecretModel("same"), SecretModel("new", auto_generate=True)),
        inputs=(InputModel("size", default="2", description="x"),),
        nested=(NestedModel("net", 0, "", "b"),),
        instance_type="m5.large",
    )

    assert write_changes(compare_models(before, after)) == (
        "- **wider:** template `net` changed: other resources.\n"
        "- secret `same` changed: you may give it.\n"
        "- secret `new` added: the Stack makes it up.\n"
        "- secret `old` removed.\n"
        "- input `size` changed: its default is `2`.\n"
        "- machine `runner` changed: its size is m5.large.\n"
    )


def test_another_scope_of_a_template_is_a_change_of_the_place() -> None:
    (change,) = compare({}, {"deployment_scope": "subscription"})

    assert (change.part, change.name) == ("network", "place")
    assert change.details == ("it is applied to a subscription",)
