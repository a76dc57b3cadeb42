# ruff: noqa: INP001 - programs beside the pages they write, not a package
"""The Stack that the reference pages describe: one role of each kind, a secret and an input."""

from exclave.domain.stacks import Cloud, RoleKind
from exclave.stacks.base import SigningKey
from exclave.stacks.model import (
    AccountPin,
    InputModel,
    ProgramPins,
    RoleModel,
    SecretModel,
    StackModel,
)

INSTALL = "INSTALL"
"""Stands for the id of an install."""


def build_example(cloud: Cloud, region: str, *, wanted_outputs: tuple[str, ...]) -> StackModel:
    """Return the model for a cloud; `wanted_outputs` choose the optional parts that are shown."""
    return StackModel(
        install_id=INSTALL,
        install="acme",
        org_id="org",
        app="shop",
        cloud=cloud,
        account=AccountPin(region),
        stack_name="acme-shop",
        description="",
        runner_url="https://runners.vendor.example",
        keys=(SigningKey("k1", "A" * 43),),
        program=ProgramPins("0.0.0", "0" * 64, "0" * 64),
        roles=tuple(_build_role(kind) for kind in RoleKind),
        secrets=(SecretModel("password", required=True),),
        inputs=(InputModel("domain"),),
        wanted_outputs=wanted_outputs,
    )


def _build_role(kind: RoleKind) -> RoleModel:
    enabled = kind is not RoleKind.BREAK_GLASS
    return RoleModel(kind.value, kind, f"{INSTALL}-{kind}", kind.value, enabled=enabled)
