"""The roles that an app asks for, as the Stack of a cloud gets them."""

from typing import Any

import pytest

from exclave.control.stacks import files, stacks
from exclave.domain.identity import InstallId
from exclave.domain.stacks import CloudAccount, RoleKind, StackPolicy, StackRole
from exclave.stacks.base import StackDocument
from tests.integration.control.conftest import World
from tests.support.installs import make_app, make_app_install
from tests.support.toy_stack import ToyStack, add_toy_stack

NAME = "{{ .nuon.install.name }}"
PARTS: dict[str, list[dict[str, Any]]] = {
    "permission": [
        {"type": "provision", "name": "overruled"},
        {
            "type": "provision",
            "name": f"{NAME}-provision",
            "display_name": "Provision",
            "description": f"Creates {NAME}",
            "permissions_boundary": "{}",
            "policies": [
                {"managed_policy_name": "AdministratorAccess"},
                {"name": "deploy", "contents": f'{{"Sid": "{NAME}"}}'},
            ],
            "named_policies": [{"name": "read_logs"}],
        },
        {"type": "custom", "name": "support", "enabled_in_stack": False},
        {
            "type": "custom",
            "name": "reader",
            "policies": [{"gcp_predefined_role": "roles/viewer"}, {"azure_actions": ["a/read"]}],
        },
    ],
    "named_policy": [{"name": "read_logs", "contents": "[]"}],
    "break_glass": [{"name": "emergency"}, {"name": "on-call", "enabled_in_stack": True}],
}


async def read_account(
    world: World, monkeypatch: pytest.MonkeyPatch, **app: Any
) -> CloudAccount | None:
    """Create a Stack of an app; return the account that it was rendered for."""
    rendered: list[StackDocument] = []
    build = files.build_document

    def keep_document(*args: Any) -> StackDocument:
        rendered.append(build(*args))
        return rendered[-1]

    monkeypatch.setattr(stacks, "build_document", keep_document)
    await make_app(world.deps, world.user, "shop", **app)
    made = await make_app_install(world.deps, world.user, "shop", "acme", provision=False)
    await stacks.create_stack(world.deps, world.user, InstallId(made.id))
    return rendered[-1].account


async def test_a_cloud_gets_the_roles_of_the_app_with_the_values_of_the_install(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_toy_stack(monkeypatch)

    account = await read_account(world, monkeypatch, cloud=ToyStack.cloud, more_parts=PARTS)

    assert account is not None
    assert account.list_roles(RoleKind.PROVISION) == (
        StackRole(
            kind=RoleKind.PROVISION,
            name="acme-provision",
            title="Provision",
            description="Creates acme",
            policies=(
                StackPolicy(managed="AdministratorAccess"),
                StackPolicy(name="deploy", document='{"Sid": "acme"}'),
                StackPolicy(name="read_logs", document="[]"),
            ),
            boundary="{}",
        ),
    )
    assert account.list_roles(RoleKind.CUSTOM) == (
        StackRole(RoleKind.CUSTOM, "support", enabled=False),
        StackRole(
            RoleKind.CUSTOM,
            "reader",
            policies=(
                StackPolicy(gcp_role="roles/viewer"),
                StackPolicy(azure_actions=("a/read",)),
            ),
        ),
    )
    assert account.list_roles(RoleKind.BREAK_GLASS) == (
        StackRole(RoleKind.BREAK_GLASS, "emergency", enabled=False),
        StackRole(RoleKind.BREAK_GLASS, "on-call", enabled=True),
    )


async def test_an_app_without_roles_has_an_account_without_roles(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_toy_stack(monkeypatch)

    account = await read_account(world, monkeypatch, cloud=ToyStack.cloud)

    assert account == CloudAccount()


async def test_a_local_stack_has_no_account(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await read_account(world, monkeypatch, more_parts=PARTS) is None
