"""Who may take a role, what the runner may do by itself, what no role may do."""

from dataclasses import replace
from typing import Any

from exclave.domain.stacks import RoleKind
from exclave.stacks.aws.cloudformation.intrinsics import write_node
from exclave.stacks.aws.policies import (
    LASTING_CREDENTIALS,
    build_guard,
    build_runner_policy,
    build_secrets_policy,
    build_trust,
)
from exclave.stacks.aws.references import When
from exclave.stacks.model import PolicyModel, RoleModel, StackModel
from tests.support.aws_stacks import INSTALL, ROLES, make_model


def read_statements(statements: Any) -> dict[str, Any]:
    """Return statements by their ids as CloudFormation has them, with their conditions aside."""
    plain: list[Any] = [item.then if isinstance(item, When) else item for item in statements]
    return {item["Sid"]: write_node(item) for item in plain}


def find_condition(statements: Any, sid: str) -> str:
    guarded: dict[str, str] = {
        read_statements([item]).popitem()[0]: item.condition
        for item in statements
        if isinstance(item, When)
    }
    return guarded[sid]


def get_role(kind: RoleKind) -> RoleModel:
    return next(role for role in ROLES if role.kind is kind)


def add_policy(model: StackModel, *actions: str) -> StackModel:
    document: Any = {
        "Version": "2012-10-17",
        "Statement": {"Effect": "Allow", "Action": list(actions), "Resource": "*"},
    }
    role = replace(model.roles[0], policies=(PolicyModel(document=document),))
    return replace(model, roles=(role, *model.roles[1:]))


def test_only_the_runner_takes_a_role_and_only_under_the_name_of_a_job() -> None:
    (statement,) = build_trust(get_role(RoleKind.PROVISION))

    assert write_node(statement) == {
        "Effect": "Allow",
        "Principal": {"AWS": {"Fn::GetAtt": ["RunnerRole", "Arn"]}},
        "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
        "Condition": {
            "StringLike": {"sts:RoleSessionName": "exclave-*", "sts:SourceIdentity": "*"}
        },
    }


def test_break_glass_ends_by_itself() -> None:
    (statement,) = build_trust(get_role(RoleKind.BREAK_GLASS))

    condition: Any = write_node(statement)
    assert condition["Condition"]["DateLessThan"] == {"aws:CurrentTime": {"Ref": "BreakGlassUntil"}}


def test_the_runner_takes_the_roles_of_its_stack_and_no_others() -> None:
    policy = read_statements(build_runner_policy(make_model()))

    arn = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role${RolePath}"
    assert policy["TakeTheRoles"]["Resource"] == [
        {"Fn::Sub": f"{arn}{role.name}"} for role in ROLES
    ]


def test_the_runner_reads_its_own_secrets_and_writes_its_own_log_and_nothing_else() -> None:
    policy = read_statements(build_runner_policy(make_model()))

    own = ("StackDocument", "SealSecret", "SecretDbPassword", "SecretSessionKey")
    more = ("SecretSmtpPassword", "InputApiKeyValue")
    assert policy["ReadTheStack"]["Resource"] == [{"Ref": name} for name in (*own, *more)]
    log = "log-group:${RunnerLog}:*"
    assert policy["WriteTheLog"]["Resource"][0]["Fn::Sub"].endswith(log)
    anything = {sid for sid, body in policy.items() if body["Resource"] == "*"}
    assert anything == {"LetTheCustomerIn"}
    assert set(policy) - anything == {
        "TakeTheRoles", "ReadTheStack", "WriteTheLog", "ReadTheCertificates", "UseTheKey"
    }  # fmt: skip


def test_parts_that_the_customer_did_not_ask_for_are_not_allowed() -> None:
    policy = build_runner_policy(make_model())

    assert find_condition(policy, "LetTheCustomerIn") == "SessionManagerOn"
    assert find_condition(policy, "ReadTheCertificates") == "HasCaBundle"
    assert find_condition(policy, "UseTheKey") == "HasKey"


def test_a_stack_without_roles_has_no_empty_list_of_roles() -> None:
    assert "TakeTheRoles" not in read_statements(build_runner_policy(make_model(roles=())))


def test_while_stopped_nothing_is_allowed() -> None:
    guard = build_guard(make_model())

    assert find_condition(guard, "Stopped") == "Stopped"
    assert read_statements(guard)["Stopped"] == {
        "Sid": "Stopped", "Effect": "Deny", "Action": "*", "Resource": "*"
    }  # fmt: skip


def test_the_guard_only_denies() -> None:
    statements = read_statements(build_guard(make_model())).values()

    assert {statement["Effect"] for statement in statements} == {"Deny"}


def test_the_guard_protects_the_roles_by_name_and_not_those_that_modules_make() -> None:
    guard = read_statements(build_guard(make_model()))

    arns = [item["Fn::Sub"] for item in guard["NotTheStackItself"]["Resource"]]
    assert (
        f"arn:${{AWS::Partition}}:iam::${{AWS::AccountId}}:role${{RolePath}}{INSTALL}-report"
        in arns
    )
    assert not [arn for arn in arns if arn.endswith(f"{INSTALL}*")]
    assert "iam:PassRole" in guard["NotTheStackItself"]["Action"]


def test_the_machine_is_closed_to_all_roles_but_its_own() -> None:
    rule = read_statements(build_guard(make_model()))["NotTheRunner"]

    runner = f"role${{RolePath}}exclave-{INSTALL}-runner"
    assert rule["Condition"] == {
        "StringEquals": {"aws:ResourceTag/exclave:guarded": INSTALL},
        "ArnNotEquals": {
            "aws:PrincipalArn": {
                "Fn::Sub": f"arn:${{AWS::Partition}}:iam::${{AWS::AccountId}}:{runner}"
            }
        },
    }
    assert "secretsmanager:*" in rule["Action"]


def test_credentials_that_outlive_a_job_are_denied_unless_the_app_names_them_in_full() -> None:
    usual = read_statements(build_guard(add_policy(make_model(), "iam:*", "iam:Create*")))
    named = read_statements(build_guard(add_policy(make_model(), "IAM:createuser")))
    all_named = read_statements(build_guard(add_policy(make_model(), *LASTING_CREDENTIALS)))

    assert usual["NoLastingCredentials"]["Action"] == list(LASTING_CREDENTIALS)
    assert "iam:CreateUser" not in named["NoLastingCredentials"]["Action"]
    assert "iam:CreateAccessKey" in named["NoLastingCredentials"]["Action"]
    assert "NoLastingCredentials" not in all_named


def test_modules_read_the_secrets_of_the_app_but_not_the_seal() -> None:
    policy = read_statements(build_secrets_policy(make_model()))

    resources = policy["ReadTheSecrets"]["Resource"]
    assert {"Ref": "SecretDbPassword"} in resources
    assert {"Ref": "SealSecret"} not in resources
    assert {"Ref": "StackDocument"} not in resources
    assert build_secrets_policy(make_model(secrets=(), inputs=())) == ()
