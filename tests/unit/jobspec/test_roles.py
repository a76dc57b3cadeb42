"""Which role a job runs with: every way in which an app, or a person, can name one."""

import pytest

from exclave.appconfig.model.fields import evolve
from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.operation_roles import RoleRule
from exclave.appconfig.model.kinds.permissions import NamedPolicyUse, Role, RolePolicy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.shared import OperationRole
from exclave.domain.intents import (
    ApplyPart,
    AwaitRunner,
    CheckPart,
    Intent,
    PlanPart,
    RemoveSecrets,
    RunAction,
    ScanPart,
    SyncPart,
    SyncSecrets,
)
from exclave.domain.lanes import POLICIES
from exclave.jobspec.roles import (
    RoleFacts,
    RoleQuestion,
    choose_role,
    covers,
    find_operation,
    find_wanted,
    find_wanted_by_action,
)
from exclave.wire.roles import Operation

MAY_DEPLOY = (RolePolicy(name="deploy", contents='{"Version":"2012-10-17"}'),)
PROVISION = Role(type="provision", name="p")
MAINTENANCE = Role(type="maintenance", name="m", policies=MAY_DEPLOY)
DEPROVISION = Role(type="deprovision", name="d")
ROLES = (PROVISION, MAINTENANCE, DEPROVISION)


def choose(
    operation: Operation,
    principal: str = "nuon::component:api",
    *,
    wanted: str = "",
    matrix: tuple[RoleRule, ...] = (),
    override: str = "",
    roles: tuple[Role, ...] = ROLES,
) -> str:
    question = RoleQuestion(operation, principal, wanted)
    return choose_role(question, RoleFacts(roles, matrix, override))


@pytest.mark.parametrize(
    ("operation", "role"),
    [
        ("provision", "p"),
        ("reprovision", "p"),
        ("deprovision", "d"),
        ("deploy", "m"),
        ("teardown", "m"),
        ("trigger", "m"),
        ("plan", "m"),
    ],
)
def test_each_operation_has_a_usual_role(operation: Operation, role: str) -> None:
    assert choose(operation) == role


def test_the_choice_for_this_run_wins_over_the_thing_and_that_over_the_matrix() -> None:
    everything = RoleRule(principal="nuon::component:*", operation="deploy", role="all")
    this = RoleRule(principal="nuon::component:api", operation="deploy", role="mine")
    other = RoleRule(principal="nuon::component:web", operation="deploy", role="others")
    matrix = (this, everything, other)

    assert choose("deploy", matrix=matrix, wanted="own", override="now") == "now"
    assert choose("deploy", matrix=matrix, wanted="own") == "own"
    assert choose("deploy", matrix=matrix) == "mine"
    assert choose("deploy", matrix=(everything, other)) == "all"
    assert choose("teardown", matrix=matrix) == "m"


def test_the_matrix_has_rules_for_actions_and_the_sandbox() -> None:
    matrix = (
        RoleRule(principal="nuon::action:*", operation="trigger", role="any"),
        RoleRule(principal="nuon::action:check", operation="trigger", role="checks"),
        RoleRule(principal="nuon::sandbox", operation="provision", role="base"),
    )

    assert choose("trigger", "nuon::action:check", matrix=matrix) == "checks"
    assert choose("trigger", "nuon::action:other", matrix=matrix) == "any"
    assert choose("provision", "nuon::sandbox", matrix=matrix) == "base"
    assert choose("reprovision", "nuon::sandbox", matrix=matrix) == "p"
    assert choose("provision", "", matrix=matrix) == "p"


def test_the_deprovision_role_removes_components_if_it_has_the_rights_of_deploys() -> None:
    same = Role(type="deprovision", name="d", policies=MAY_DEPLOY)
    admin = Role(
        type="deprovision",
        name="d",
        policies=(RolePolicy(managed_policy_name="AdministratorAccess"),),
    )

    assert choose("teardown", roles=(PROVISION, MAINTENANCE, same)) == "d"
    assert choose("teardown", roles=(PROVISION, MAINTENANCE, admin)) == "d"
    assert choose("teardown") == "m"


@pytest.mark.parametrize(
    ("way", "value"),
    [
        ("managed_policy_name", "ReadOnlyAccess"),
        ("contents", "{}"),
        ("gcp_permissions", ("storage.buckets.get",)),
        ("gcp_predefined_role", "roles/viewer"),
        ("azure_actions", ("Microsoft.Storage/*/read",)),
        ("azure_built_in_roles", ("Reader",)),
    ],
)
def test_every_way_to_give_a_right_counts(way: str, value: str | tuple[str, ...]) -> None:
    role = Role(name="a", policies=(evolve(RolePolicy(), **{way: value}),))

    assert covers(role, role)
    assert not covers(Role(name="b"), role)


def test_a_shared_policy_is_a_right_too() -> None:
    role = Role(name="a", named_policies=(NamedPolicyUse(name="read_logs"),))

    assert not covers(Role(name="b"), role)
    assert covers(Role(name="b", named_policies=role.named_policies), role)


def test_maintenance_stands_in_for_a_role_that_the_app_lacks() -> None:
    assert choose("provision", roles=(MAINTENANCE,)) == "m"
    assert choose("deprovision", roles=(MAINTENANCE,)) == "m"
    assert choose("deploy", roles=(Role(type="custom", name="c"),)) == ""


def test_the_last_of_two_standard_roles_counts() -> None:
    assert choose("deploy", roles=(*ROLES, Role(type="maintenance", name="m2"))) == "m2"


@pytest.mark.parametrize(
    ("intent", "kind", "operation"),
    [
        (PlanPart("sandbox"), "provision", "provision"),
        (PlanPart("sandbox"), "reprovision", "reprovision"),
        (ApplyPart("sandbox", "p", destroy=True), "deprovision", "deprovision"),
        (ScanPart("sandbox"), "drift_scan", "reprovision"),
        (PlanPart(POLICIES), "provision", "deploy"),
        (PlanPart(POLICIES, destroy=True), "deprovision", "teardown"),
        (PlanPart("component:api"), "provision", "deploy"),
        (ApplyPart("component:api", "p", destroy=True), "teardown", "teardown"),
        (SyncPart("component:api"), "deploy", "deploy"),
        (CheckPart("component:api", "wfl_1"), "health_check", "deploy"),
        (RunAction("check", "manual"), "action_run", "trigger"),
        (SyncSecrets(), "sync_secrets", "provision"),
        (RemoveSecrets(), "deprovision", "provision"),
        (AwaitRunner(), "provision", None),
    ],
)
def test_a_step_says_what_its_role_is_used_for(
    intent: Intent, kind: str, operation: Operation | None
) -> None:
    assert find_operation(intent, kind) == operation


def test_the_sandbox_names_a_role_for_each_operation() -> None:
    rules = (OperationRole(operation="deprovision", role="away"),)
    sandbox = Sandbox(operation_roles=rules)

    assert find_wanted(sandbox, "deprovision") == "away"
    assert find_wanted(sandbox, "provision") == ""


def test_the_role_for_emergencies_is_for_runs_that_a_person_starts() -> None:
    action = Action(name="a", role="usual", break_glass_role="emergency")

    assert find_wanted_by_action(action, "manual") == "emergency"
    assert find_wanted_by_action(action, "cron") == "usual"
