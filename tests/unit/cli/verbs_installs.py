"""The verbs of `exclave installs`: how each is called, what the server answers, what it shows."""

from typing import Any

from tests.unit.cli import samples
from tests.unit.cli.fake_control import AT, INS, WFL, make_id
from tests.unit.cli.verbs import Verb

Json = dict[str, Any]

_AT_INS = f"/v1/installs/{INS}"
_LISTED = {"GET /v1/installs": samples.page(samples.install())}


def app_install(**more: Any) -> Json:
    return (
        samples.install()
        | {
            "app_id": make_id("app"),
            "app": "shop",
            "state": "active",
            "target": "local",
            "config_version": 3,
            "newest_version": 4,
            "approve_all": False,
            "here": False,
            "managed_by": "",
            "workflow_id": None,
        }
        | more
    )


def cloud_account(**more: Any) -> Json:
    return {
        "cloud": "aws",
        "region": "eu-west-1",
        "account": "123456789012",
        "principal": "exclave-runner",
        "pinned_by": "code",
        "pinned_at": AT,
        "machine": "i-0123456789abcdef0",
        "enrolled_at": AT,
    } | more


def part(name: str, **more: Any) -> Json:
    return {
        "part": name,
        "state": "active",
        "drift": "",
        "config_version": 3,
        "is_current": True,
        "message": "",
        "workflow_id": WFL,
        "changed_at": AT,
        "drift_at": None,
    } | more


def detail(**more: Any) -> Json:
    parts = [
        part("sandbox"),
        part(
            "component:api", drift="drifted", health="degraded", config_version=2, is_current=False
        ),
    ]
    return app_install(
        lanes=[samples.lane()],
        parts=parts,
        runners=[samples.runner()],
        workflows=[samples.workflow()],
        **more,
    )


def _input(name: str, **more: Any) -> Json:
    return {
        "name": name,
        "group": "web",
        "display_name": "",
        "description": "",
        "type": "string",
        "value": "x",
        "is_set": True,
        "default": None,
        "required": False,
        "sensitive": False,
        "owner": "vendor",
    } | more


def inputs() -> Json:
    return {
        "version": 2,
        "at": AT,
        "by": "ada",
        "groups": [{"name": "web", "display_name": "Web", "description": ""}],
        "inputs": [_input("domain", value="acme.test"), _input("key", value=None, sensitive=True)],
    }


def changed(*names: str, workflow: Json | None = None) -> Json:
    return {
        "version": 3,
        "changed": names,
        "sandbox": False,
        "components": ["api", "web"] if names else [],
        "workflow": workflow,
    }


def upgrade(**more: Any) -> Json:
    return {
        "install_id": INS,
        "name": "customer-one",
        "from_version": 3,
        "to_version": 4,
        "parts": [
            {"part": "component:api", "change": "changed"},
            {"part": "secret:token", "change": "added"},
        ],
        "changed_inputs": ["replicas"],
        "dropped_inputs": ["old"],
        "new_stack": True,
        "workflow": None,
    } | more


def state(version: int = 7, **tree: Any) -> Json:
    document = {"name": "customer-one", "inputs": {"inputs": {"domain": "acme.test"}}} | tree
    return {
        "version": version,
        "at": AT,
        "cause": "inputs",
        "workflow_id": None,
        "document": document,
    }


_FLOW = samples.workflow()
_WATCH = f"exclave workflows watch {WFL}"
_WORK = {f"POST {_AT_INS}/workflows": _FLOW}


def _work(kind: str, **more: Any) -> Json:
    base: Json = {
        "kind": kind,
        "components": [],
        "sandbox": False,
        "dependents": False,
        "plan_only": False,
        "rollback_to": None,
        "adopt": False,
        "take_over_release": False,
        "approve_all": None,
    }
    return base | more


def stack() -> Json:
    return {
        "id": make_id("stk"),
        "version": 1,
        "expires_at": AT,
        "cloud": "local",
        "files": [
            {
                "name": "local.py",
                "media_type": "text/x-python",
                "size": 20,
                "sha256": "0" * 64,
                "url": "https://r.test/v1/stacks/xcs_1/local.py",
                "content": "print('the script')\n",
            }
        ],
        "parameters": [],
        "instructions": {
            "summary": "Run the script.",
            "commands": ["curl -fsS https://r.test/v1/stacks/xcs_1/local.py | python3 -"],
            "links": [],
            "warning": "plain http",
        },
    }


_LINK = make_id("stl")


def stack_versions() -> Json:
    version = {"id": make_id("stk"), "version": 2, "state": "awaiting", "config_id": make_id("cfg")}
    return {"items": [version | {"digest": "0123456789abcdef" * 4, "created_at": AT}]}


def stack_diff() -> Json:
    change = {
        "kind": "added",
        "part": "role",
        "name": "deploy",
        "details": ["all of s3"],
        "is_wider": True,
    }
    return {"before": 1, "after": 2, "changes": [change]}


def stack_links() -> Json:
    return {"items": [{"id": _LINK, "created_by": "ada", "created_at": AT, "expires_at": AT}]}


def stack_outputs() -> Json:
    return {
        "id": make_id("stk"),
        "version": 1,
        "state": "active",
        "config_id": make_id("cfg"),
        "outputs": {"hostname": "box", "install_inputs": {"zone": "b"}},
        "created_at": AT,
        "run_at": AT,
    }


INSTALL_VERBS: dict[str, Verb] = {
    "installs list": Verb("--app shop --label tier=gold --state active", {"GET /v1/installs": samples.page(app_install())},
                          "customer-one  shop  active  3 (newest 4)  tier=gold"),
    "installs create": Verb("shop --name customer-one --input domain=acme.test --label tier=gold --approve-all",
                            {"POST /v1/installs": app_install(workflow_id=WFL)}, f"workflow  {WFL}",
                            "exclave installs stack customer-one",
                            {"name": "customer-one", "app": "shop", "labels": {"tier": "gold"}, "inputs": {"domain": "acme.test"},
                             "approve_all": True, "here": False, "provision": True, "region": "", "account": "", "tenant": "", "confirm_account": False}),
    "installs get": Verb("customer-one", _LISTED | {f"GET {_AT_INS}": detail()},
                         "component:api  active  degraded  drifted  2 (outdated)", "release-lane customer-one component:db"),
    "installs labels": Verb("customer-one tier=silver", _LISTED | {f"GET {_AT_INS}": detail(), f"PUT {_AT_INS}/labels": app_install(labels={"tier": "silver"})},
                            "tier=silver", body={"labels": {"tier": "silver"}}),
    "installs approve-all": Verb(f"{INS} on --yes", {f"PUT {_AT_INS}/approve-all": app_install(approve_all=True)},
                                 "approval  all plans automatically", body={"approve_all": True}),
    "installs manage": Verb(f"{INS} by-config", {f"PUT {_AT_INS}/managed-by": app_install(managed_by="config")},
                            "managed   by config", body={"managed_by": "config"}),
    "installs delete": Verb(f"{INS} --forget gone --yes", {f"DELETE {_AT_INS}": None}, "", f"Deleted `{INS}`."),
    "installs release-lane": Verb(f"{INS} component:db --reason checked --yes",
                                  {f"POST {_AT_INS}/lanes/component%3Adb/release": samples.install(samples.lane(state="free"))},
                                  "component:db  free", body={"reason": "checked"}),
    "installs inputs get": Verb("customer-one", _LISTED | {f"GET {_AT_INS}/inputs": inputs()}, "Web    key     ***", "Version 2"),
    "installs inputs set": Verb(f"{INS} replicas=3 --unset zone", {f"POST {_AT_INS}/inputs": changed("replicas", workflow=_FLOW)}, WFL,
                                "Changed: replicas. Affected: api, web.",
                                {"values": {"replicas": "3"}, "unset": ["zone"], "dry_run": False, "approve_all": None}),
    "installs upgrade": Verb(f"{INS} --deploy --yes", {f"POST {_AT_INS}/upgrade": upgrade(workflow=_FLOW)},
                             f"customer-one: now at config 4  {_WATCH}", "+ secret:token",
                             {"config": None, "inputs": {}, "deploy": True, "dry_run": False, "approve_all": None}),
    "installs state": Verb(INS, {f"GET {_AT_INS}/state": state()}, '"domain": "acme.test"', "Version 7"),
    "installs readme": Verb(INS, {f"GET {_AT_INS}/readme": {"text": "# Hello\n", "rendered": False, "warnings": ["line 1: odd"]}},
                            "# Hello\n", "warning: line 1: odd"),
    "installs stack": Verb(INS, {f"POST {_AT_INS}/stack": stack()}, "print('the script')", "warning: plain http"),
    "installs stack-versions": Verb(INS, {f"GET {_AT_INS}/stack/versions": stack_versions()}, "2        awaiting  0123456789ab"),
    "installs stack-diff": Verb(f"{INS} 1 2", {f"GET {_AT_INS}/stack/diff": stack_diff()}, "+ role deploy  (wider)\n    all of s3",
                                "1 change from version 1 to version 2"),
    "installs stack-links": Verb(f"{INS} --revoke {_LINK}",
                                 {f"DELETE {_AT_INS}/stack/links/{_LINK}": None, f"GET {_AT_INS}/stack/links": stack_links()}, _LINK),
    "installs stack-outputs": Verb("customer-one", _LISTED | {f"GET {_AT_INS}/stack": stack_outputs()}, "install_inputs  zone=b"),
    "installs account": Verb("customer-one", _LISTED | {f"GET {_AT_INS}/account": cloud_account(alarm="a try from 9", alarm_at=AT)}, "a try from 9"),
    "installs confirm-account": Verb(f"{INS} 123456789012", {f"POST {_AT_INS}/account/confirm": cloud_account(confirmed_by="ann")},
                                     "confirmed  by ann", body={"account": "123456789012"}),
    "installs reset-account": Verb(f"{INS} --reason moved --yes", {f"POST {_AT_INS}/account/reset": cloud_account(account="", pinned_by=None, machine="")},
                                   "pinned to  no account yet", body={"reason": "moved", "region": "", "account": "", "tenant": ""}),
    "installs provision": Verb(INS, _WORK, WFL, _WATCH, _work("provision")),
    "installs reprovision": Verb(f"{INS} --sandbox --plan-only", _WORK, WFL, _WATCH, _work("reprovision_sandbox", plan_only=True)),
    "installs rollback": Verb(f"{INS} web", _WORK, WFL, _WATCH, _work("deploy", components=["web"], rollback_to="previous")),
    "installs adopt": Verb(f"{INS} web --yes", _WORK, WFL, _WATCH, _work("deploy", components=["web"], adopt=True)),
    "installs deprovision": Verb(f"{INS} --yes", _WORK, WFL, _WATCH, _work("deprovision")),
    "installs deploy": Verb(f"{INS} api web --dependents --approve-all", _WORK, WFL, _WATCH,
                            _work("deploy", components=["api", "web"], dependents=True, approve_all=True)),
    "installs teardown": Verb(f"{INS} --all --yes", _WORK, WFL, _WATCH, _work("teardown_all")),
    "installs sync-secrets": Verb(INS, _WORK, WFL, _WATCH, _work("sync_secrets")),
    "installs drift": Verb(f"{INS} sandbox component:api", _WORK, WFL, _WATCH, _work("drift_scan", components=["api"], sandbox=True)),
}  # fmt: skip
"""`installs sync` reads files and has tests of its own."""
