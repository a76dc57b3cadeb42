"""Actions of AWS that a security reviewer asks about first."""

from typing import Final

from exclave.stacks.aws.policies import LASTING_CREDENTIALS
from exclave.stacks.reporting.rights import Topic


def _topic(sentence: str, *actions: str) -> Topic:
    return Topic(sentence, frozenset(actions))


DATA: Final = (
    _topic("read objects in buckets", "s3:GetObject", "s3:GetObjectVersion"),
    _topic("read secrets", "secretsmanager:GetSecretValue", "secretsmanager:BatchGetSecretValue"),
    _topic(
        "read parameters, which may be secret",
        "ssm:GetParameter",
        "ssm:GetParameters",
        "ssm:GetParametersByPath",
    ),
    _topic("decrypt what is encrypted with keys of KMS", "kms:Decrypt"),
    _topic(
        "read tables of DynamoDB",
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:Query",
        "dynamodb:Scan",
    ),
    _topic(
        "query databases",
        "rds-data:ExecuteStatement",
        "redshift-data:ExecuteStatement",
        "athena:StartQueryExecution",
    ),
    _topic("log in to databases", "rds-db:connect", "redshift:GetClusterCredentials"),
    _topic("read messages and streams", "sqs:ReceiveMessage", "kinesis:GetRecords"),
    _topic("read logs", "logs:GetLogEvents", "logs:FilterLogEvents", "logs:StartQuery"),
    _topic(
        "read contents of disks",
        "ebs:GetSnapshotBlock",
        "ec2:CreateSnapshot",
        "ec2:ModifySnapshotAttribute",
    ),
    _topic(
        "copy databases out of the account",
        "rds:ModifyDBSnapshotAttribute",
        "rds:ModifyDBClusterSnapshotAttribute",
        "rds:StartExportTask",
    ),
    _topic("read images and code", "ecr:BatchGetImage", "codecommit:GitPull", "lambda:GetFunction"),
    _topic(
        "open data to others",
        "s3:PutBucketPolicy",
        "s3:PutBucketAcl",
        "s3:PutObjectAcl",
        "s3:PutBucketPublicAccessBlock",
    ),
    _topic(
        "change or delete objects in buckets", "s3:PutObject", "s3:DeleteObject", "s3:DeleteBucket"
    ),
    _topic(
        "delete databases and tables",
        "rds:DeleteDBInstance",
        "rds:DeleteDBCluster",
        "dynamodb:DeleteTable",
        "redshift:DeleteCluster",
    ),
    _topic(
        "delete disks and backups",
        "ec2:DeleteVolume",
        "ec2:DeleteSnapshot",
        "backup:DeleteRecoveryPoint",
        "rds:DeleteDBSnapshot",
    ),
    _topic("delete keys", "kms:ScheduleKeyDeletion"),
)
"""What can be done with data."""

WIDENING: Final = (
    _topic("make credentials that outlive the Stack", *LASTING_CREDENTIALS),
    _topic(
        "give rights to existing roles, users and groups",
        "iam:AttachRolePolicy",
        "iam:PutRolePolicy",
        "iam:AttachUserPolicy",
        "iam:PutUserPolicy",
        "iam:AttachGroupPolicy",
        "iam:PutGroupPolicy",
        "iam:AddUserToGroup",
    ),
    _topic("change what policies allow", "iam:CreatePolicyVersion", "iam:SetDefaultPolicyVersion"),
    _topic(
        "remove the boundaries of roles",
        "iam:DeleteRolePermissionsBoundary",
        "iam:PutRolePermissionsBoundary",
    ),
    _topic("make new roles, which have no guard", "iam:CreateRole"),
    _topic("change who may take on a role", "iam:UpdateAssumeRolePolicy"),
    _topic("take on other roles that allow it", "sts:AssumeRole"),
    _topic("hand roles to services that act with them", "iam:PassRole"),
    _topic(
        "start machines, functions and tasks that may have roles",
        "ec2:RunInstances",
        "lambda:CreateFunction",
        "lambda:UpdateFunctionCode",
        "ecs:RunTask",
        "codebuild:StartBuild",
        "glue:CreateJob",
        "cloudformation:CreateStack",
        "sagemaker:CreateNotebookInstance",
    ),
    _topic(
        "run commands on machines of the account",
        "ssm:SendCommand",
        "ssm:StartSession",
        "ec2-instance-connect:SendSSHPublicKey",
    ),
    _topic(
        "trust identities from outside",
        "iam:CreateOpenIDConnectProvider",
        "iam:CreateSAMLProvider",
        "rolesanywhere:CreateTrustAnchor",
    ),
)
"""How more rights can be had than a policy gives."""

MANAGED: Final = {
    "AdministratorAccess": "everything in the account",
    "PowerUserAccess": "everything but users, roles, the organization and the account itself",
    "ReadOnlyAccess": "read and list nearly everything, contents of buckets and tables too",
    "ViewOnlyAccess": "list resources and read their settings",
    "SecurityAudit": "read settings that matter for security",
    "IAMFullAccess": "all of IAM, so all rights in the end",
}
"""What managed policies of AWS allow, as far as their names are known by everybody."""
