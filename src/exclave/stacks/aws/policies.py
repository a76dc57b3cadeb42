"""Who may take a role of the Stack, what the runner may do, and what no role ever may."""

from collections.abc import Iterator, Mapping, Sequence

from exclave.base.json_values import Json, JsonObject, list_or_empty, object_or_empty
from exclave.domain.stacks import RoleKind
from exclave.stacks.aws.names import (
    GUARDED,
    ROLE_PATH,
    write_prefix,
    write_role_arn,
    write_role_name,
    write_runner_name,
)
from exclave.stacks.aws.references import (
    Attribute,
    Fact,
    Joined,
    Node,
    ParameterRef,
    ResourceRef,
    When,
    join_text,
)
from exclave.stacks.aws.resources import (
    DOCUMENT,
    REPOSITORY,
    RUNNER_LOG,
    RUNNER_ROLE,
    SEAL,
    get_arn,
    name_input,
    name_secret,
)
from exclave.stacks.model import RoleModel, StackModel

VERSION = "2012-10-17"
TAKE_ROLE = ("sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity")
READ_SECRET = ("secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret")
LASTING_CREDENTIALS = (
    "iam:CreateUser",
    "iam:CreateAccessKey",
    "iam:CreateLoginProfile",
    "iam:UpdateLoginProfile",
    "iam:CreateServiceSpecificCredential",
    "iam:UploadSigningCertificate",
)
ACCOUNT_CHANGES = (
    "organizations:*",
    "account:*",
    "cloudtrail:StopLogging",
    "cloudtrail:DeleteTrail",
)
IAM_WRITES = (
    "iam:Attach*",
    "iam:Create*",
    "iam:Delete*",
    "iam:Detach*",
    "iam:Put*",
    "iam:Update*",
    "iam:Set*",
    "iam:Tag*",
    "iam:Untag*",
    "iam:AddRoleToInstanceProfile",
    "iam:RemoveRoleFromInstanceProfile",
    "iam:PassRole",
)
RUNNER_CHANGES = (
    "autoscaling:*",
    "ec2:*",
    "ssm:*",
    "cloudformation:*",
    "logs:Delete*",
    "logs:Put*",
    "secretsmanager:*",
)
SESSION_CHANNELS = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)
PUSH_IMAGES = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:CompleteLayerUpload",
    "ecr:DescribeImages",
    "ecr:GetDownloadUrlForLayer",
    "ecr:InitiateLayerUpload",
    "ecr:PutImage",
    "ecr:UploadLayerPart",
)
Statements = tuple[Node, ...]


def write_document(statements: Sequence[Node]) -> Mapping[str, Node]:
    """Return a policy document with these statements."""
    return {"Version": VERSION, "Statement": statements}


def build_trust(role: RoleModel) -> Statements:
    """Return who may take an operation role: the runner, under the name of a job."""
    condition: dict[str, Node] = {
        "StringLike": {"sts:RoleSessionName": "exclave-*", "sts:SourceIdentity": "*"}
    }
    if role.kind is RoleKind.BREAK_GLASS:
        condition["DateLessThan"] = {"aws:CurrentTime": ParameterRef("BreakGlassUntil")}
    principal = {"AWS": get_arn(RUNNER_ROLE)}
    return (
        {
            "Effect": "Allow",
            "Principal": principal,
            "Action": TAKE_ROLE,
            "Condition": condition,
        },
    )


def build_machine_trust() -> Statements:
    """Return who may take the runner's own role: a machine of EC2."""
    principal = {"Service": "ec2.amazonaws.com"}
    return ({"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"},)


def build_runner_policy(model: StackModel) -> Statements:
    """Return what the runner may do by itself: take the roles, read its secrets, write its log."""
    secrets = (get_arn(DOCUMENT), get_arn(SEAL), *list_secret_arns(model))
    statements: list[Node] = [
        _allow("ReadTheStack", READ_SECRET, secrets),
        _allow("WriteTheLog", ("logs:CreateLogStream", "logs:PutLogEvents"), (_write_log_arn(),)),
        When("HasCaBundle", _allow("ReadTheCertificates", ("ssm:GetParameter",), (_write_ca(),))),
        When("HasKey", _allow_key()),
        When("SessionManagerOn", _allow("LetTheCustomerIn", SESSION_CHANNELS, "*")),
    ]
    if model.roles:
        roles = tuple(write_role_arn(write_role_name(role)) for role in model.roles)
        statements.insert(0, _allow("TakeTheRoles", TAKE_ROLE, roles))
    return tuple(statements)


def build_guard(model: StackModel) -> Statements:
    """Return what no role of the Stack may do, whatever else it may; while stopped, nothing."""
    return (
        When("Stopped", _deny("Stopped", "*", "*")),
        *_build_credentials_rule(model),
        _deny("NoAccountChanges", ACCOUNT_CHANGES, "*"),
        _deny("NotTheStackItself", IAM_WRITES, _list_own_arns(model)),
        {
            **_deny("NotTheRunner", RUNNER_CHANGES, "*"),
            "Condition": {
                "StringEquals": {f"aws:ResourceTag/{GUARDED}": model.install_id},
                "ArnNotEquals": {"aws:PrincipalArn": write_role_arn(write_runner_name(model))},
            },
        },
    )


def build_secrets_policy(model: StackModel) -> Statements:
    """Return what lets modules read the app's secrets by their ARN; empty if it has none."""
    arns = list_secret_arns(model)
    if not arns:
        return ()
    return (_allow("ReadTheSecrets", READ_SECRET, arns), When("HasKey", _allow_key()))


def build_registry_policy() -> Statements:
    """Return what lets the runner copy the app's images into the install's repository."""
    return (
        _allow("LogIn", ("ecr:GetAuthorizationToken",), "*"),
        _allow("CopyImages", PUSH_IMAGES, (get_arn(REPOSITORY),)),
    )


def list_secret_arns(model: StackModel) -> tuple[Node, ...]:
    """List the ARNs of the app's secrets and of the sensitive inputs."""
    inputs = (get_arn(name_input(item)) for item in model.inputs if item.sensitive)
    return (*(get_arn(name_secret(secret)) for secret in model.secrets), *inputs)


def list_full_actions(model: StackModel) -> frozenset[str]:
    """Return the actions that a policy of the app allows by their full names, in lower case."""
    return frozenset(
        action.lower()
        for role in model.roles
        for policy in role.policies
        for action in _list_allowed(policy.document or {})
        if "*" not in action and "?" not in action
    )


def _build_credentials_rule(model: StackModel) -> Iterator[Node]:
    """Return the rule against credentials that outlive a job.

    What the app's own policy names in full was meant, and the customer sees it in the report.
    """
    wanted = list_full_actions(model)
    actions = tuple(action for action in LASTING_CREDENTIALS if action.lower() not in wanted)
    if actions:
        yield _deny("NoLastingCredentials", actions, "*")


def _list_own_arns(model: StackModel) -> tuple[Node, ...]:
    """List the ARNs of the Stack's own roles, profile and policies.

    The roles of the app are listed by name: a pattern with the install's id would also match the
    roles that the app's own modules make.
    """
    prefix = write_prefix(model)
    iam = ("arn:", Fact.PARTITION, ":iam::", Fact.ACCOUNT)
    return (
        *(write_role_arn(write_role_name(role)) for role in model.roles),
        write_role_arn(f"{prefix}-*"),
        join_text(*iam, f":policy/{prefix}-*"),
        join_text(*iam, ":instance-profile", ROLE_PATH, f"{prefix}-*"),
    )


def _write_log_arn() -> Joined:
    return join_text(
        "arn:", Fact.PARTITION, ":logs:", Fact.REGION, ":", Fact.ACCOUNT, ":log-group:",
        ResourceRef(RUNNER_LOG, Attribute.NAME), ":*",
    )  # fmt: skip


def _write_ca() -> Joined:
    return join_text(
        "arn:", Fact.PARTITION, ":ssm:", Fact.REGION, ":", Fact.ACCOUNT, ":parameter",
        ParameterRef("CaBundleParameter"),
    )  # fmt: skip


def _allow_key() -> Mapping[str, Node]:
    return _allow("UseTheKey", ("kms:Decrypt",), (ParameterRef("KmsKeyArn"),))


def _allow(sid: str, action: Sequence[str], resource: str | Sequence[Node]) -> Mapping[str, Node]:
    return {"Sid": sid, "Effect": "Allow", "Action": action, "Resource": resource}


def _deny(
    sid: str, action: str | Sequence[str], resource: str | Sequence[Node]
) -> Mapping[str, Node]:
    return {"Sid": sid, "Effect": "Deny", "Action": action, "Resource": resource}


def _list_allowed(document: JsonObject) -> Iterator[str]:
    statements = document.get("Statement")
    for statement in [statements] if isinstance(statements, Mapping) else list_or_empty(statements):
        body = object_or_empty(statement)
        if body.get("Effect") == "Allow":
            yield from _list_texts(body.get("Action"))


def _list_texts(value: Json) -> Iterator[str]:
    items = [value] if isinstance(value, str) else list_or_empty(value)
    yield from (item for item in items if isinstance(item, str))
