"""The simulation of policies, which the emulated AWS lacks."""

from typing import Any

from moto.core.responses import ActionResult
from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.iam.models import IAMBackend
from moto.iam.responses import IamResponse

_DECISIONS = {
    PermissionResult.PERMITTED: "allowed",
    PermissionResult.DENIED: "explicitDeny",
    PermissionResult.NEUTRAL: "implicitDeny",
}


def add_simulation() -> None:
    """Let people ask what a role may do."""
    response: Any = IamResponse
    response.simulate_principal_policy = _simulate


def _simulate(self: IamResponse) -> ActionResult:
    role = self.backend.get_role_by_arn(self._get_param("PolicySourceArn"))
    policies = _list_policies(self.backend, role.name)
    results = [
        {"EvalActionName": action, "EvalDecision": _decide(policies, action)}
        for action in self._get_param("ActionNames", [])
    ]
    return ActionResult({"EvaluationResults": results, "IsTruncated": False})


def _list_policies(backend: IAMBackend, role: str) -> list[IAMPolicy]:
    inline = [backend.get_role_policy(role, name) for name in backend.list_role_policies(role)]
    attached = backend.list_attached_role_policies(role)[0]
    return [
        *(IAMPolicy({"policy_document": document}) for _, document, *_ in inline),
        *(IAMPolicy(backend.get_policy(policy.arn)) for policy in attached),
    ]


def _decide(policies: list[IAMPolicy], action: str) -> str:
    found = {policy.is_action_permitted(action) for policy in policies}
    for result in (PermissionResult.DENIED, PermissionResult.PERMITTED):
        if result in found:
            return _DECISIONS[result]
    return _DECISIONS[PermissionResult.NEUTRAL]
