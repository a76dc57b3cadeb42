"""Decisions about installs and their parts."""

import pytest

from exclave.domain.installs import (
    ApprovalOption,
    InstallState,
    PartState,
    component_of,
    decide_approval,
    decide_state,
    is_empty,
    may_exist,
    name_part,
    takes_deploys,
)


@pytest.mark.parametrize("component", ["", "api", "component"])
def test_a_part_and_its_component_name_each_other(component: str) -> None:
    assert component_of(name_part(component)) == component


def test_a_part_may_exist_unless_it_is_absent_or_unknown() -> None:
    assert [state for state in PartState if not may_exist(state)] == [PartState.ABSENT]
    assert not may_exist(None)


def test_installs_before_and_after_everything_are_empty() -> None:
    assert {state for state in InstallState if is_empty(state)} == {
        InstallState.NEW,
        InstallState.DEPROVISIONED,
    }


def test_only_what_is_provisioned_takes_deploys() -> None:
    assert {state for state in InstallState if takes_deploys(state)} == {
        InstallState.ACTIVE,
        InstallState.FAILED,
    }


@pytest.mark.parametrize(
    ("parts", "wanted", "expected"),
    [
        ({}, ["sandbox"], InstallState.NEW),
        ({"sandbox": PartState.ABSENT}, ["sandbox"], InstallState.NEW),
        ({"sandbox": PartState.ABSENT}, None, InstallState.NEW),
        ({"sandbox": PartState.ACTIVE}, ["sandbox"], InstallState.ACTIVE),
        ({"sandbox": PartState.ACTIVE}, ["sandbox", "component:a"], InstallState.FAILED),
        (
            {"sandbox": PartState.ACTIVE, "component:a": PartState.PLANNED},
            ["sandbox"],
            InstallState.ACTIVE,
        ),
        ({"sandbox": PartState.FAILED}, ["sandbox"], InstallState.FAILED),
        ({"sandbox": PartState.ACTIVE}, None, InstallState.FAILED),
    ],
)
def test_the_state_follows_from_the_parts(
    parts: dict[str, PartState], wanted: list[str] | None, expected: InstallState
) -> None:
    assert decide_state(parts, wanted) is expected


def test_approving_all_wins_over_policies() -> None:
    assert (
        decide_approval(approve_all=True, approval=ApprovalOption.AUTO)
        is ApprovalOption.APPROVE_ALL
    )
    assert decide_approval(approve_all=False, approval=ApprovalOption.AUTO) is ApprovalOption.AUTO
    assert decide_approval(approve_all=False, approval=None) is ApprovalOption.PROMPT
