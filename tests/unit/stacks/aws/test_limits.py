"""What AWS would refuse is found before a customer sees it."""

from dataclasses import replace
from typing import Any

import pytest

from exclave.domain.stacks import RoleKind
from exclave.stacks.aws.stack import AwsStack
from exclave.stacks.base import SigningKey
from exclave.stacks.model import InputModel, PolicyModel, RoleModel, SecretModel, StackModel
from tests.support.aws_stacks import ROLES, make_model
from tests.support.aws_variants import VARIANTS


def list_messages(model: StackModel) -> list[str]:
    return [finding.message for finding in AwsStack().check(model)]


def make_document(characters: int) -> Any:
    statement = {"Effect": "Allow", "Action": "s3:Get*", "Resource": "r" * characters}
    return {"Version": "2012-10-17", "Statement": [statement]}


def give_policies(*policies: PolicyModel) -> StackModel:
    return make_model(roles=(replace(ROLES[0], policies=policies), *ROLES[1:]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_usual_models_have_no_findings(variant: str) -> None:
    assert list_messages(VARIANTS[variant]) == []


def test_a_policy_that_fits_neither_in_a_role_nor_beside_it_is_found() -> None:
    (message,) = list_messages(
        give_policies(
            PolicyModel("large", document=make_document(7000)),
            PolicyModel("small", document=make_document(4000)),
        )
    )

    assert message.startswith(f"the policy `large` of the role `{ROLES[0].name}`")


def test_too_many_managed_policies_are_found_and_name_the_role() -> None:
    policies = tuple(PolicyModel(managed=f"Policy{number}") for number in range(10))

    (finding,) = AwsStack().check(give_policies(*policies))

    assert "needs 11 managed policies" in finding.message
    assert (finding.section, finding.name) == ("permissions", ROLES[0].name)


def test_a_boundary_that_is_too_large_is_found() -> None:
    role = replace(ROLES[0], boundary=make_document(7000))

    assert "the boundary of the role" in list_messages(make_model(roles=(role,)))[0]


def test_two_parts_with_the_same_name_are_found() -> None:
    twice = make_model(secrets=(SecretModel("a_b"), SecretModel("a-b")))
    ours = make_model(roles=(RoleModel("runner", RoleKind.CUSTOM, "r", "R"),))
    seal = make_model(secrets=(SecretModel("seal"),))

    for model in (twice, ours, seal):
        assert "has the same name in the Stack as" in list_messages(model)[0]


def test_functions_of_cloudformation_in_a_policy_are_refused() -> None:
    document = make_document(1)
    document["Statement"][0]["Resource"] = {"Fn::GetAtt": ["SealSecret", "Id"]}

    (message,) = list_messages(give_policies(PolicyModel(document=document)))

    assert "a function of CloudFormation" in message


def test_too_many_parameters_roles_and_keys_are_found() -> None:
    inputs = make_model(inputs=tuple(InputModel(f"n{number}") for number in range(200)))
    many = tuple(RoleModel(f"r{n}", RoleKind.CUSTOM, f"r{n}" * 10, "R") for n in range(80))
    keys = tuple(SigningKey(f"k{n}", "A" * 43, "root", "B" * 86) for n in range(80))

    assert any("parameters" in message for message in list_messages(inputs))
    assert any("the guard" in message for message in list_messages(make_model(roles=many)))
    assert any("boot script" in message for message in list_messages(make_model(keys=keys)))


def test_a_default_that_is_too_long_is_found() -> None:
    model = make_model(inputs=(InputModel("text", default="x" * 5000),))

    assert "InstallText" in list_messages(model)[0]
