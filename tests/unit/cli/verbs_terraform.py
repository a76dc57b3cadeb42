"""The verbs about Terraform: states, locks, orphans, plans."""

from typing import Any

from tests.unit.cli import samples
from tests.unit.cli.fake_control import AT, DIGEST, EXE, INS, JOB, WFL
from tests.unit.cli.verbs import Verb

Json = dict[str, Any]

_STATES = f"/v1/installs/{INS}/tf-states"
_PLAN = f"GET /v1/jobs/{JOB}/attachments/plan.json"


def state(**more: Any) -> Json:
    return {
        "workspace": "component:db",
        "version": 3,
        "serial": 7,
        "lineage": "line",
        "size": 900,
        "sha256": "a" * 64,
        "execution_id": EXE,
        "at": AT,
        "resources": [
            {"address": 'aws_s3_bucket.b["x"]', "type": "aws_s3_bucket", "id": "bucket-1"}
        ],
    } | more


def lock(*, stale: bool = True) -> Json:
    return {
        "workspace": "component:db",
        "lock_id": "l-1",
        "operation": "OperationTypeApply",
        "who": "root@host",
        "execution_id": EXE,
        "at": AT,
        "stale": stale,
    }


def workspace(**more: Any) -> Json:
    return {"workspace": "component:db", "newest": state(), "lock": lock()} | more


def detail(**more: Any) -> Json:
    return workspace(versions=[state(resources=[])]) | more


def rescued(**more: Any) -> Json:
    return {
        "execution_id": EXE,
        "job_id": JOB,
        "workspace": "component:db",
        "serial": 8,
        "lineage": "line",
        "sha256": "a" * 64,
        "size": 900,
        "resources": 1,
        "at": AT,
        "misfit": "",
    } | more


def orphan(**more: Any) -> Json:
    return {
        "workspace": "component:db",
        "address": "aws_s3_bucket.b",
        "type": "aws_s3_bucket",
        "certainty": "created",
        "id_key": "id",
        "id": "bucket-1",
        "execution_id": EXE,
        "import_block": 'import {\n  to = aws_s3_bucket.b\n  id = "bucket-1"\n}\n',
        "job_id": JOB,
        "at": AT,
    } | more


def attribute(path: str, before: Any = None, after: Any = None, **more: Any) -> Json:
    return {"path": path, "before": before, "after": after} | more


def plan() -> Json:
    return {
        "format": 1,
        "tool": "terraform",
        "resources": [
            {
                "address": "t.new",
                "type": "t",
                "name": "new",
                "action": "create",
                "attributes": [
                    attribute("id", unknown=True),
                    attribute("size", after=3),
                    attribute("password", sensitive=True),
                ],
            },
            {
                "address": "t.changed",
                "type": "t",
                "name": "changed",
                "action": "update",
                "attributes": [attribute("tags.a", "1", "2"), attribute("gone", "x")],
            },
            {
                "address": "t.swap",
                "type": "t",
                "name": "swap",
                "action": "replace",
                "reason": "replace_because_cannot_update",
                "attributes": [attribute("zone", "a", "b", forces_replacement=True)],
            },
            {
                "address": "t.old",
                "type": "t",
                "name": "old",
                "action": "delete",
                "attributes": [attribute("size", 1)],
            },
        ],
        "outputs": [
            {"name": "url", "action": "update", "before": "a", "unknown": True},
            {"name": "key", "action": "create", "sensitive": True},
        ],
        "drift": [{"address": "t.changed", "type": "t", "name": "changed", "action": "update"}],
        "summary": {
            "add": 1,
            "change": 1,
            "replace": 1,
            "destroy": 1,
            "import": 0,
            "move": 0,
            "outputs": 2,
        },
        "policies": [{"name": "cost", "level": "warn", "message": "it is dear"}],
    }


def objects_plan() -> Json:
    """Return a plan of objects of a cluster, with everything that only such a plan has."""
    return {
        "tool": "kubernetes",
        "resources": [
            {
                "address": "apps/Deployment/shop/web",
                "type": "apps/v1 Deployment",
                "name": "web",
                "action": "update",
                "attributes": [attribute("spec.replicas", 5, 2, ignored=True)],
                "taken_from": [{"path": "spec.replicas", "manager": "kubectl (scale)"}],
                "notes": ["in a new namespace: not checked by the server"],
            },
            {
                "address": "batch/Job/shop/migrate",
                "type": "batch/v1 Job",
                "name": "migrate",
                "action": "run",
                "events": ["pre-install", "pre-upgrade"],
            },
            {
                "address": "PersistentVolumeClaim/shop/data",
                "type": "v1 PersistentVolumeClaim",
                "name": "data",
                "action": "keep",
                "notes": ["it holds data"],
            },
        ],
        "summary": {"change": 1, "run": 1, "keep": 1},
        "notes": ["the namespace `shop` is created"],
        "warnings": ["spec.replicas has two owners"],
        "outside_images": ["docker.io/library/redis:7 (not pinned)"],
    }


def planned_workflow() -> Json:
    planned = samples.plan() | {"job_id": JOB, "outputs": {"digest": DIGEST, "noop": False}}
    return samples.workflow(planned, samples.gate())


TERRAFORM_VERBS: dict[str, Verb] = {
    "installs tf-state list": Verb(INS, {f"GET {_STATES}": samples.page(workspace())},
                                   f"component:db  7       3         1          2030-01-02 03:04:05Z  left by {EXE}"),
    "installs tf-state show": Verb(f"{INS} component:db --version 3",
                                   {f"GET {_STATES}/component%3Adb": detail(lock=None)},
                                   'aws_s3_bucket.b["x"]  aws_s3_bucket  bucket-1'),
    "installs tf-state versions": Verb(f"{INS} component:db",
                                       {f"GET {_STATES}/component%3Adb": detail(versions=[state(restored_from=1)])},
                                       f"3        7       900    2030-01-02 03:04:05Z  {EXE}  version 1 again"),
    "installs tf-state unlock": Verb(f"{INS} component:db --reason gone --yes",
                                     {f"POST {_STATES}/component%3Adb/unlock": detail(lock=None)}, "serial     7",
                                     body={"reason": "gone"}),
    "installs tf-state rescued": Verb(f"{INS} component:db",
                                      {f"GET {_STATES}/component%3Adb/rescued": samples.page(rescued())},
                                      "can be restored"),
    "installs tf-state restore": Verb(f"{INS} component:db {EXE} --reason checked --yes",
                                      {f"POST {_STATES}/component%3Adb/restore": detail(lock=None)}, "serial     7",
                                      body={"execution_id": EXE, "version": None, "reason": "checked"}),
    "installs orphans": Verb(INS, {f"GET /v1/installs/{INS}/orphans": {"orphans": [orphan()]}},
                             'import {\n  to = aws_s3_bucket.b\n  id = "bucket-1"\n}'),
    "jobs plan": Verb(JOB, {_PLAN: plan()}, "Plan: 1 to add, 1 to change, 1 to replace, 1 to destroy."),
    "workflows plan": Verb(f"{WFL} ok", {f"GET /v1/workflows/{WFL}": planned_workflow(), _PLAN: objects_plan()},
                           "! takes over spec.replicas from kubectl (scale)"),
}  # fmt: skip
