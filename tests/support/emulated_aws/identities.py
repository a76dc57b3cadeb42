"""Roles and policies in the emulated CloudFormation, as far as it forgets their properties."""

import json
from typing import Any

from moto.ec2.exceptions import DependencyViolationError
from moto.iam import models
from moto.iam.models import IAMBackend, ManagedPolicy, Role, iam_backends
from moto.utilities.utils import get_partition

MANAGED = ("AdministratorAccess", "ReadOnlyAccess", "PowerUserAccess")
"""The policies of AWS that tests use; all of them take seconds to read."""
_create = Role.create_from_cloudformation_json.__func__  # type: ignore[attr-defined]
_delete = Role.delete_from_cloudformation_json.__func__  # type: ignore[attr-defined]


def complete_identities() -> None:
    """Let roles and policies of a stack have all that the template gives them, also later."""
    data: Any = models
    all_policies = json.loads(data.aws_managed_policies_data)
    data.aws_managed_policies_data = json.dumps({name: all_policies[name] for name in MANAGED})
    role: Any = Role
    role.create_from_cloudformation_json = classmethod(_create_role)
    role.update_from_cloudformation_json = classmethod(_update_role)
    role.delete_from_cloudformation_json = classmethod(_delete_role)
    policy: Any = ManagedPolicy
    policy.update_from_cloudformation_json = classmethod(_update_policy)
    policy.delete_from_cloudformation_json = classmethod(_delete_policy)


def _create_role(
    cls: Any, /, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **kwargs: Any
) -> Any:  # fmt: skip
    role = _create(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs)
    properties = cloudformation_json["Properties"]
    for arn in properties.get("ManagedPolicyArns", []):
        _backend(account_id, region_name).attach_role_policy(arn, role.name)
    for policy in properties.get("Policies", []):
        # The emulation keeps an object, which its own checks cannot read.
        document = json.dumps(policy["PolicyDocument"])
        _backend(account_id, region_name).put_role_policy(role.name, policy["PolicyName"], document)
    role.tags = list(properties.get("Tags", []))
    role.max_session_duration = str(properties.get("MaxSessionDuration", 3600))
    role.description = properties.get("Description", "")
    return role


def _update_role(
    cls: Any, /, original_resource: Any, new_resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
) -> Any:  # fmt: skip
    del cls, new_resource_name, account_id, region_name
    properties = cloudformation_json["Properties"]
    original_resource.permissions_boundary_arn = properties.get("PermissionsBoundary")
    trust = json.dumps(properties["AssumeRolePolicyDocument"])
    original_resource.assume_role_policy_document = trust
    return original_resource


def _delete_role(
    cls: Any, /, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
) -> None:
    backend = _backend(account_id, region_name)
    name = cloudformation_json["Properties"].get("RoleName", resource_name)
    for policy in list(backend.list_attached_role_policies(name)[0]):
        backend.detach_role_policy(policy.arn, name)
    _delete(cls, resource_name, cloudformation_json, account_id, region_name)


def _update_policy(
    cls: Any, /, original_resource: Any, new_resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
) -> Any:  # fmt: skip
    del cls, new_resource_name
    document = json.dumps(cloudformation_json["Properties"]["PolicyDocument"])
    backend = _backend(account_id, region_name)
    backend.create_policy_version(original_resource.arn, document, set_as_default=True)
    return original_resource


def _delete_policy(
    cls: Any, /, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
) -> None:
    del cls, cloudformation_json
    backend = _backend(account_id, region_name)
    if backend.get_policy(resource_name).attachment_count:
        raise DependencyViolationError("the policy is attached")  # as AWS says; it comes again
    backend.delete_policy(resource_name)


def _backend(account_id: str, region_name: str) -> IAMBackend:
    return iam_backends[account_id][get_partition(region_name)]
