"""The verbs of `exclave apps` that need a server."""

from typing import Any

from tests.unit.cli import samples
from tests.unit.cli.fake_control import AT, DIGEST, INS, WFL, make_id
from tests.unit.cli.verbs import Verb

Json = dict[str, Any]
APP = make_id("app")


def config(version: int = 2, **more: Any) -> Json:
    return {
        "id": make_id("cfg", version),
        "version": version,
        "digest": DIGEST,
        "archive_digest": DIGEST,
        "components": ["api", "db"],
        "cloud": "local",
        "current": True,
        "created_at": AT,
        "created_by": "ada",
    } | more


def app(**more: Any) -> Json:
    return {
        "id": APP,
        "name": "demo",
        "created_at": AT,
        "created_by": "ada",
        "installs": 3,
        "config": config(),
    } | more


def field(path: str, before: str | None, after: str | None, diff: str = "") -> Json:
    return {"path": path, "before": before, "after": after, "diff": diff}


def diff(**more: Any) -> Json:
    script = field("steps[check].inline_contents", "a\n", "b\n", "@@ -1 +1 @@\n-a\n+b")
    return {
        "app": "demo",
        "before": 1,
        "after": 2,
        "builds": ["component:api"],
        "more_installs": 0,
        "parts": [
            {"section": "component", "name": "cache", "change": "added", "fields": []},
            {
                "section": "component",
                "name": "api",
                "change": "changed",
                "fields": [field("vars.size", "1", "2"), field("files", DIGEST, DIGEST)],
            },
            {"section": "action", "name": "check", "change": "changed", "fields": [script]},
            {
                "section": "sandbox",
                "name": "",
                "change": "changed",
                "fields": [field("terraform_version", None, "1.11.3")],
            },
            {"section": "component", "name": "old", "change": "removed", "fields": []},
        ],
        "installs": [{"id": INS, "name": "prod", "version": 1, "parts": ["component:api"]}],
    } | more


def synced(**more: Any) -> Json:
    return {
        "app": "demo",
        "changed": True,
        "dry_run": False,
        "config": config(),
        "findings": [],
        "diff": diff(),
        "workflow_id": WFL,
    } | more


APP_VERBS: dict[str, Verb] = {
    "apps create": Verb("demo", {"POST /v1/apps": app(config=None)}, "version   never synced",
                        "exclave apps sync DIRECTORY --app demo", {"name": "demo"}),
    "apps list": Verb("", {"GET /v1/apps": samples.page(app())}, "demo  2        3         2030-01-02 03:04:05Z"),
    "apps get": Verb("demo", {"GET /v1/apps/demo": app()}, "components  api, db"),
    "apps sync": Verb(". --app demo", {"PUT /v1/apps/demo/sync": synced()}, "demo: version 2 is stored",
                      f"exclave workflows watch {WFL}"),
    "apps configs": Verb("demo", {"GET /v1/apps/demo/configs": samples.page(config(2), config(1, current=False))},
                         "2        current  2           2030-01-02 03:04:05Z  ada"),
    "apps diff": Verb("demo 1 2", {"GET /v1/apps/demo/diff": diff()}, "~ component api\n    vars.size: 1 → 2"),
}  # fmt: skip
