"""What Google Cloud would refuse is found before anybody applies it."""

from dataclasses import replace
from typing import Any

import pytest

from exclave.appconfig.diagnostics.codes import Severity
from exclave.domain.stacks import RoleKind
from exclave.stacks.base import SigningKey
from exclave.stacks.findings import Finding
from exclave.stacks.gcp.limits import METADATA_BYTES, PERMISSIONS
from exclave.stacks.gcp.stack import GcpStack
from exclave.stacks.model import InputModel, NestedModel, PolicyModel, RoleModel, SecretModel
from tests.support.gcp_stacks import ROLES, make_model


def check(**changes: Any) -> tuple[Finding, ...]:
    """Check a model without the role for emergencies, which has a finding of its own."""
    return GcpStack().check(make_model(**{"roles": ROLES[:-1], **changes}))


def find(**changes: Any) -> list[tuple[str, str]]:
    """Return section and message of what is found."""
    return [(one.section, one.message) for one in check(**changes)]


def make_role(kind: RoleKind = RoleKind.CUSTOM, **policy: Any) -> tuple[RoleModel, ...]:
    return (RoleModel("ops", kind, "ops", "Ops", policies=(PolicyModel(**policy),)),)


def test_an_app_with_something_of_everything_is_accepted() -> None:
    assert find() == []


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"gcp_permissions": ("storage.*",)}, "`storage.*` of the role `ops` is no permission"),
        ({"gcp_role": "storage.admin"}, "`storage.admin` of the role `ops` is no role"),
        (
            {"gcp_permissions": tuple(f"storage.a.b{n}" for n in range(PERMISSIONS + 1))},
            "a policy of the role `ops` has too many permissions",
        ),
    ],
)
def test_a_right_that_does_not_exist_is_refused(policy: dict[str, Any], message: str) -> None:
    ((section, found),) = find(roles=make_role(**policy))

    assert section == "permissions"
    assert found.startswith(message)


def test_a_basic_role_has_no_end_and_whoever_uses_it_for_emergencies_is_told() -> None:
    roles = make_role(RoleKind.BREAK_GLASS, gcp_role="roles/owner")

    (finding,) = check(roles=roles)

    assert finding.severity is Severity.WARNING
    assert finding.message.startswith("Google gives `roles/owner` no end")
    assert find(roles=make_role(RoleKind.PROVISION, gcp_role="roles/owner")) == []


@pytest.mark.parametrize(
    ("secrets", "inputs", "owner"),
    [
        ((), (InputModel("a", sensitive=True), InputModel("a_version")), "the input `a_version`"),
        ((SecretModel("1st"),), (), "the secret `1st`"),
    ],
)
def test_names_that_terraform_cannot_have_are_refused(
    secrets: tuple[SecretModel, ...], inputs: tuple[InputModel, ...], owner: str
) -> None:
    ((_, message),) = find(secrets=secrets, inputs=inputs)

    assert message.startswith(owner)


def test_a_machine_takes_a_boot_script_of_a_certain_size() -> None:
    keys = (SigningKey("k", "A" * METADATA_BYTES),)

    ((_, message),) = find(keys=keys)

    assert message.startswith("the boot script of the machine has")


def test_a_module_without_a_version_is_doubtful() -> None:
    nested = NestedModel("tools", 0, "acme/stacks//tools")

    (finding,) = check(nested=(nested,))

    assert finding.severity is Severity.WARNING
    pinned = replace(nested, address=f"{nested.address}?ref=v1")
    assert find(nested=(pinned,)) == []
