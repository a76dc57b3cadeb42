"""Templates with parameters in the emulated CloudFormation, which reads few of their functions.

What a request asks for is worked out first (`tests.support.cloudformation`), and the emulation gets
a template without parameters. Each stack and each change set remembers what was asked for, since
later requests name previous values.
"""

import json
from dataclasses import dataclass
from typing import Any

from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.models import ChangeSet, CloudFormationBackend, Stack
from moto.cloudformation.responses import CloudFormationResponse

from tests.support.cloudformation import Resolver, TemplateRefused

BODY_BYTES = 51_200
"""A longer template has to be in a bucket."""
_create = CloudFormationResponse.create_stack
_update = CloudFormationResponse.update_stack
_create_change_set = CloudFormationResponse.create_change_set
_execute = CloudFormationBackend.execute_change_set


@dataclass(frozen=True)
class Wish:
    """A template and the values of its parameters, as they were given."""

    template: str
    values: dict[str, str]


def complete_templates() -> None:
    """Let stacks be made from templates with parameters, conditions and rules."""
    response: Any = CloudFormationResponse
    response.create_stack = _create_stack
    response.update_stack = _update_stack
    response.create_change_set = _plan_change
    stack: Any = Stack
    stack.parameter_list = property(_list_parameters)
    backend: Any = CloudFormationBackend
    backend.execute_change_set = _execute_change_set


def _create_stack(self: CloudFormationResponse) -> Any:
    wish = _read_wish(self, None)
    _put_resolved(self, wish)
    result = _create(self)
    _remember(_find_stack(self), wish)
    return result


def _update_stack(self: CloudFormationResponse) -> Any:
    stack = _find_stack(self)
    wish = _read_wish(self, stack)
    if wish == _recall(stack):
        raise ValidationError(message="No updates are to be performed.")
    _put_resolved(self, wish)
    result = _update(self)
    _remember(stack, wish)
    return result


def _plan_change(self: CloudFormationResponse) -> Any:
    stack = _find_stack(self)
    wish = _read_wish(self, stack)
    self.params["ChangeSetType"] = self._get_param("ChangeSetType", "UPDATE")
    _put_resolved(self, wish)
    result = _create_change_set(self)
    made: Any = self.cloudformation_backend.describe_change_set(self._get_param("ChangeSetName"))
    made.wish = wish
    return result


def _execute_change_set(
    self: CloudFormationBackend, change_set_name: str, stack_name: str | None = None
) -> None:
    made: Any = self.describe_change_set(change_set_name)
    if made.execution_status != "AVAILABLE":
        raise ValidationError(message=f"ChangeSet is in {made.execution_status} state")
    _execute(self, change_set_name, stack_name)
    change: ChangeSet = made
    change.stack.output_map = change.stack._create_output_map()
    _remember(change.stack, made.wish)


def _list_parameters(self: Stack) -> list[dict[str, str]]:
    """List the values of a stack as a description of it has them."""
    wish = _recall(self)
    shown = {
        name: "****" if body.get("NoEcho") else wish.values.get(name, body.get("Default"))
        for name, body in json.loads(wish.template).get("Parameters", {}).items()
    }
    return [{"ParameterKey": name, "ParameterValue": str(value)} for name, value in shown.items()]


def _read_wish(response: CloudFormationResponse, stack: Stack | None) -> Wish:
    before = _recall(stack) if stack is not None else None
    template = _read_template(response, before)
    values: dict[str, str] = {}
    for item in response._get_param("Parameters", []):
        name = item["ParameterKey"]
        if not item.get("UsePreviousValue"):
            values[name] = item.get("ParameterValue", "")
        elif before is None or name not in json.loads(before.template)["Parameters"]:
            message = f"Cannot specify usePreviousValue as true for the parameter key {name}"
            raise ValidationError(message=message)
        elif name in before.values:
            values[name] = before.values[name]
    return Wish(template, values)


def _read_template(response: CloudFormationResponse, before: Wish | None) -> str:
    if response._get_bool_param("UsePreviousTemplate", if_none=False):
        assert before is not None
        return before.template
    if url := response._get_param("TemplateURL"):
        return str(response._get_stack_from_s3_url(url))
    body = str(response._get_param("TemplateBody"))
    if len(body.encode()) > BODY_BYTES:
        raise ValidationError(message=f"TemplateBody is longer than {BODY_BYTES} bytes")
    return body


def _put_resolved(response: CloudFormationResponse, wish: Wish) -> None:
    """Let the emulation see a template of resources only."""
    try:
        resolved = Resolver(json.loads(wish.template), wish.values, response.region).resolve()
    except TemplateRefused as refused:
        raise ValidationError(message=str(refused)) from refused
    for name in ("Parameters", "TemplateURL", "UsePreviousTemplate"):
        response.params.pop(name, None)
    response.params["TemplateBody"] = json.dumps(resolved)


def _find_stack(response: CloudFormationResponse) -> Stack:
    return response.cloudformation_backend.get_stack(response._get_param("StackName"))


def _remember(stack: Any, wish: Wish) -> None:
    stack.wish = wish


def _recall(stack: Any) -> Wish:
    found: Wish = stack.wish
    return found
