"""The verbs of `exclave drift`."""

from typing import Any

from tests.unit.cli import samples
from tests.unit.cli.fake_control import AT, INS, make_id
from tests.unit.cli.verbs import Verb

_AT = f"/v1/installs/{INS}/drift-findings"
_ID = make_id("drf")


def finding(**more: Any) -> dict[str, Any]:
    return {
        "id": _ID,
        "part": "component:web",
        "address": "apps/Deployment/shop/web",
        "path": "spec.replicas",
        "change": "update",
        "detail": "5 → 2",
        "content": "a" * 64,
        "state": "new",
        "first_at": AT,
        "last_at": AT,
        "changed_at": AT,
        "accepted_by": "",
        "reason": "",
    } | more


ACCEPTED = finding(state="accepted", accepted_by="eva", reason="scaled by hand")

DRIFT_VERBS: dict[str, Verb] = {
    "drift list": Verb(
        f"{INS} --part web --state new",
        {f"GET {_AT}": samples.page(finding())},
        "apps/Deployment/shop/web spec.replicas",
    ),
    "drift accept": Verb(
        f"{INS} {_ID} --reason known --yes",
        {f"GET {_AT}/{_ID}": finding(), f"POST {_AT}/{_ID}/accept": ACCEPTED},
        "eva: scaled by hand",
        body={"content": "a" * 64, "reason": "known"},
    ),
    "drift reopen": Verb(
        f"{INS} {_ID} --reason mistake",
        {f"POST {_AT}/{_ID}/reopen": finding(state="seen")},
        "seen",
        body={"reason": "mistake"},
    ),
}
