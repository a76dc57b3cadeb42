"""What Azure would refuse is found before a customer sees it."""

from dataclasses import replace
from typing import Any

import pytest

from exclave.domain.stacks import RoleKind
from exclave.stacks.azure.built_in_roles import find_role_id, list_role_names
from exclave.stacks.azure.stack import AzureStack
from exclave.stacks.base import SigningKey
from exclave.stacks.model import (
    InputModel,
    NestedModel,
    PolicyModel,
    RoleModel,
    SecretModel,
    StackModel,
)
from tests.support.azure_stacks import ROLES, TEMPLATE, VARIANTS, make_model


def list_messages(model: StackModel) -> list[str]:
    return [finding.message for finding in AzureStack().check(model)]


def give(**policy: Any) -> StackModel:
    return make_model(roles=(replace(ROLES[0], policies=(PolicyModel(**policy),)), *ROLES[1:]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_usual_models_have_no_findings(variant: str) -> None:
    assert list_messages(VARIANTS[variant]) == []


def test_a_built_in_role_that_is_not_known_is_found_and_an_id_is_taken() -> None:
    (finding,) = AzureStack().check(give(azure_roles=("Contributer",)))

    assert "`Contributer`, whose id is not known" in finding.message
    assert (finding.section, finding.name) == ("permissions", ROLES[0].name)
    assert list_messages(give(azure_roles=("B24988AC-6180-42a0-ab88-20f7382dd24c",))) == []


def test_ids_of_built_in_roles_are_ids_and_differ() -> None:
    names = list_role_names()

    assert len(names) > 100
    assert len({name.lower() for name in names.values()}) == len(names)
    assert all(find_role_id(name) == role_id for role_id, name in names.items())
    assert all(find_role_id(role_id) == role_id for role_id in names)


@pytest.mark.parametrize("action", ["read", "Microsoft.Web", "Microsoft.Web/sites read", "a/'b'"])
def test_an_action_that_is_none_is_found(action: str) -> None:
    assert "which is none" in list_messages(give(azure_actions=(action,)))[0]


@pytest.mark.parametrize("action", ["*", "*/read", "Microsoft.Web/sites/*"])
def test_actions_with_stars_are_taken(action: str) -> None:
    assert list_messages(give(azure_actions=(action,))) == []


def test_two_parts_with_the_same_name_are_found() -> None:
    twice = make_model(secrets=(SecretModel("a_b"), SecretModel("a-b")))
    ours = make_model(roles=(RoleModel("runner", RoleKind.CUSTOM, "r", "R"),))
    value = make_model(
        secrets=(SecretModel("input_key"),), inputs=(InputModel("key", sensitive=True),)
    )

    for model in (twice, ours, value):
        assert "has the same name in the Stack as" in list_messages(model)[0]


def test_a_secret_whose_name_is_too_long_for_a_vault_is_found() -> None:
    assert "is too long" in list_messages(make_model(secrets=(SecretModel("s" * 128),)))[0]


def test_too_many_parameters_roles_and_keys_are_found() -> None:
    inputs = make_model(inputs=tuple(InputModel(f"n{number}") for number in range(260)))
    many = tuple(RoleModel(f"r{n}", RoleKind.CUSTOM, f"r{n}" * 10, "R") for n in range(120))
    keys = tuple(SigningKey(f"k{n}", "A" * 43, "root", "B" * 86) for n in range(300))

    assert any("parameters" in message for message in list_messages(inputs))
    found = list_messages(make_model(roles=many))
    assert any("expression" in message for message in found)
    assert any("the document" in message for message in found)
    assert any("boot script" in message for message in list_messages(make_model(keys=keys)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "needs a value for its parameter `size`"),
        ({"size": "3", "other": "x"}, "has no parameter `other`"),
        ({"size": "large"}, "wants `size` as int"),
    ],
)
def test_a_template_of_the_vendor_that_cannot_be_deployed_is_found(
    parameters: dict[str, str], message: str
) -> None:
    model = make_model(nested=(NestedModel("topic", 0, "", TEMPLATE, parameters),))

    assert message in list_messages(model)[0]
