"""Rights of single resources and trust of roles, which the emulated AWS passes over.

It asks policies about the resource `*` only. Statements of roles with conditions are left out here:
the emulation knows nothing of the tags that those of a Stack ask for.
"""

import fnmatch
import json
from typing import Any

from moto.iam.access_control import IAMPolicyStatement, IAMRequest, PermissionResult

_is_permitted = IAMPolicyStatement.is_action_permitted
_check_permitted = IAMRequest.check_action_permitted


def complete_rights() -> None:
    """Let requests for secrets, roles, queues, topics, parameters and tables be judged by what they are for."""
    statement: Any = IAMPolicyStatement
    statement.is_action_permitted = _check_statement
    request: Any = IAMRequest
    request.check_action_permitted = _check_request
    request._check_role_trust_relationship = _is_trusted


def _check_statement(self: Any, action: str, *args: Any, **kwargs: Any) -> PermissionResult:
    if self._statement.get("Condition") and "Resource" in self._statement:
        return PermissionResult.NEUTRAL
    return _is_permitted(self, action, *args, **kwargs)


def _check_request(self: Any, resource: str) -> None:
    _check_permitted(self, _find_resource(self) or resource)


def _find_resource(request: Any) -> str:
    """Return the ARN that a request is for; empty if that is not known."""
    body = _read_body(request)
    match request._service:
        case "secretsmanager":
            return body.get("SecretId", "")
        case "logs":
            group, stream = body.get("logGroupName", ""), body.get("logStreamName", "")
            return _write_arn(request, f"log-group:{group}:log-stream:{stream}")
        case "sts":
            return _read_form(request, "RoleArn")
        case "sns":
            named = _write_arn(request, _read_form(request, "Name"))
            return _read_form(request, "TopicArn") or _read_form(request, "ResourceArn") or named
        case "sqs":
            url = body.get("QueueUrl") or body.get("QueueName", "")
            return _write_arn(request, url.rpartition("/")[2])
        case "ssm":
            name = body.get("Name") or body.get("ResourceId", "")
            return _write_arn(request, name and f"parameter/{name.removeprefix('/')}")
        case "dynamodb":
            table = body.get("TableName", "")
            return body.get("ResourceArn") or _write_arn(request, table and f"table/{table}")
        case _:
            return ""


def _read_body(request: Any) -> dict[str, str]:
    """Return the members of a JSON body that are texts."""
    try:
        body = json.loads(request._body or "{}")
    except ValueError:
        return {}
    return {name: value for name, value in body.items() if isinstance(value, str)}


def _write_arn(request: Any, name: str) -> str:
    place = f"{request._service}:{request._region}:{request.account_id}"
    return f"arn:aws:{place}:{name}" if name else ""


def _is_trusted(request: Any, arn: str) -> bool:
    """Return whether a role lets this session take it on, under these names."""
    role = request.backend.get_role_by_arn(arn)
    own = request.backend.get_role(request._access_key._owner_role_name).arn
    given = {
        "sts:RoleSessionName": _read_form(request, "RoleSessionName"),
        "sts:SourceIdentity": _read_form(request, "SourceIdentity"),
    }
    trust = role.assume_role_policy_document
    document = json.loads(trust) if isinstance(trust, str) else trust
    return any(_fits(statement, own, given) for statement in document["Statement"])


def _fits(statement: Any, own: str, given: dict[str, str]) -> bool:
    patterns = statement.get("Condition", {}).get("StringLike", {})
    named = all(
        given.get(key) and fnmatch.fnmatchcase(given[key], pattern)
        for key, pattern in patterns.items()
    )
    return named and statement["Principal"].get("AWS") in ("*", own)


def _read_form(request: Any, name: str) -> str:
    value = request._data.get(name, "")
    return str(value[0] if isinstance(value, list) else value)
