"""The verbs of `exclave actions` and `exclave runbooks`."""

from typing import Any

from tests.unit.cli import samples
from tests.unit.cli.fake_control import AT, INS, WFL, make_id
from tests.unit.cli.verbs import Verb

_AT = f"/v1/installs/{INS}"


def run(**more: Any) -> dict[str, Any]:
    return {
        "id": make_id("run"),
        "action": "check",
        "trigger": "cron",
        "state": "succeeded",
        "workflow_id": WFL,
        "step": "cron.check",
        "message": "",
        "outputs": {},
        "started_at": AT,
        "finished_at": AT,
    } | more


ACTION = {
    "name": "check",
    "timeout": "1m",
    "steps": ["ask"],
    "last_run": run(),
    "triggers": [
        {"type": "manual"},
        {"type": "cron", "cron": "*/15 * * * *", "next_at": AT, "note": ""},
    ],
}
BOOK = {
    "name": "refresh",
    "description": "Again.",
    "steps": ["look: action check"],
    "inputs": [
        {"name": "size", "type": "number", "description": "", "required": False, "default": "1"}
    ],
}

ACTION_VERBS: dict[str, Verb] = {
    "actions list": Verb(INS, {f"GET {_AT}/actions": samples.page(ACTION)}, "cron (*/15 * * * *)"),
    "actions run": Verb(
        f"{INS} check --env A=b",
        {f"POST {_AT}/actions/run": samples.workflow()},
        WFL,
        "exclave workflows watch",
        {"action": "check", "env": {"A": "b"}, "role": ""},
    ),
    "actions runs": Verb(INS, {f"GET {_AT}/actions/runs": samples.page(run())}, "cron"),
    "runbooks list": Verb(INS, {f"GET {_AT}/runbooks": samples.page(BOOK)}, "look: action check"),
    "runbooks run": Verb(
        f"{INS} refresh --input size=2",
        {f"POST {_AT}/runbooks/run": samples.workflow()},
        WFL,
        "exclave workflows watch",
        {"runbook": "refresh", "inputs": {"size": "2"}},
    ),
}
