"""The verbs of `exclave builds`."""

from typing import Any

from tests.unit.cli import samples
from tests.unit.cli.fake_control import AT, DIGEST, JOB, WFL, make_id
from tests.unit.cli.verbs import LOG, Verb

BUILD = make_id("bui")
COMMIT = "c" * 40
_ERROR = "component `db`, step check: main.tf:3: not UTF-8"


def build(**more: Any) -> dict[str, Any]:
    return {
        "id": BUILD,
        "app_id": make_id("app"),
        "app": "demo",
        "part": "component:db",
        "state": "succeeded",
        "repository": "apps/demo",
        "digest": DIGEST,
        "commit": COMMIT,
        "source": {
            "type": "git",
            "url": "https://github.com/acme/db",
            "ref": "main",
            "directory": ".",
        },
        "size": 10240,
        "provenance": DIGEST,
        "error": "",
        "workflow_id": WFL,
        "job_id": JOB,
        "configs": [1, 2],
        "created_at": AT,
        "created_by": "ada",
        "finished_at": AT,
    } | more


BUILD_VERBS: dict[str, Verb] = {
    "builds list": Verb(
        "", {"GET /v1/builds": samples.page(build())}, "component:db  succeeded  1, 2"
    ),
    "builds get": Verb(
        BUILD, {f"GET /v1/builds/{BUILD}": build(state="failed", error=_ERROR)}, _ERROR
    ),
    "builds logs": Verb(
        f"{BUILD} --follow",
        {f"GET /v1/builds/{BUILD}": build(), f"GET /v1/jobs/{JOB}/logs/stream": LOG},
        "hello\n",
        lines=True,
    ),
    "builds create": Verb(
        f"demo db --commit {COMMIT}",
        {"POST /v1/builds": build(state="running")},
        BUILD,
        "exclave builds logs",
        {"app": "demo", "part": "db", "commit": COMMIT},
    ),
}
