"""One table from intents to jobs."""

from collections.abc import Callable, Mapping
from typing import Any

from exclave.control.intents.actions import make_action, make_secrets, make_sign_of_life
from exclave.control.intents.scope import Scope
from exclave.control.intents.terraform import make_apply, make_plan
from exclave.wire.model import Request

_MAKERS: Mapping[str, Callable[[Scope, Mapping[str, Any]], Request]] = {
    "plan": make_plan,
    "apply": make_apply,
    "action": make_action,
    "secrets": make_secrets,
    "runner": make_sign_of_life,
}


def make_job(scope: Scope, intent: Mapping[str, Any]) -> dict[str, Any]:
    """Make the specification of a step's job; `NotReady` tells why there can be none."""
    scope.config_id = str(intent["config"])
    return _MAKERS[intent["do"]](scope, intent).model_dump(mode="json")
