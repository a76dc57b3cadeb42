"""One sample of each thing that the Control API answers, as JSON."""

from typing import Any

from tests.unit.cli.fake_control import (
    AT,
    DIGEST,
    EXE,
    INS,
    JOB,
    ORG,
    QUE,
    RGT,
    RUN,
    TOK,
    WFL,
    make_id,
)

Json = dict[str, Any]


def usage() -> dict[str, Any]:
    stored = {"bytes": 1536, "bytes_limit": 100 << 30, "items": 2, "items_limit": None}
    counted = {"bytes": None, "bytes_limit": None, "items": 3, "items_limit": 100}
    return {"kinds": [{"kind": "registry", **stored}, {"kind": "tokens", **counted}]}


def org() -> Json:
    return {"id": ORG, "name": "acme", "created_at": AT, "build_queue_id": QUE}


def whoami() -> Json:
    grants = [{"role": "admin", "scope": "org", "scope_id": ""}]
    return {
        "org": org(),
        "account_id": make_id("acc"),
        "account": "ada",
        "token_id": TOK,
        "grants": grants,
    }


def token() -> Json:
    return {
        "id": TOK,
        "name": "ci",
        "account": "robot",
        "prefix": "xcl_0123",
        "created_at": AT,
        "grants": [{"role": "operator", "scope": "install", "scope_id": INS}],
        "expires_at": "2030-04-02T03:04:05Z",
        "revoked_at": None,
        "last_used_at": None,
    }


def four_eyes() -> Json:
    return {
        "on": True,
        "off_requested_by": "ada",
        "off_request_expires_at": AT,
        "admins": ["ada", "bob"],
    }


def revoked_token() -> Json:
    revoked = [{"kind": "registry_token", "id": RGT, "name": "apps/demo"}]
    stays = [{"kind": "runner", "id": RUN, "name": "vm-1"}]
    return {
        "id": TOK,
        "name": "ci",
        "dry_run": False,
        "revoked": {"counts": {"registry_token": 1}, "items": revoked},
        "still_valid": {"counts": {"runner": 1}, "items": stays},
    }


def listed_registry_token() -> Json:
    return {
        "id": RGT,
        "repository": "apps/demo",
        "push": True,
        "created_by": "ada",
        "created_at": AT,
        "expires_at": AT,
        "made_with": TOK,
    }


def registry_token(**more: Any) -> Json:
    return {
        "url": "http://127.0.0.1:8701",
        "repository": f"{ORG}/apps/*",
        "push": True,
        "username": "exclave",
        "password": "xcg_" + "1" * 52,
        "expires_at": AT,
    } | more


def repository() -> Json:
    return {"name": "apps/demo", "tags": 2, "manifests": 3, "size": 1536}


def tag() -> Json:
    return {"tag": "v1", "digest": DIGEST, "changed_at": AT}


def garbage() -> Json:
    return {
        "dry_run": True,
        "manifests": 2,
        "blobs": 3,
        "bytes": 2 << 20,
        "uploads": 1,
        "orphans": 0,
        "pinned": 7,
    }


def lane(name: str = "component:db", state: str = "needs_reconcile") -> Json:
    return {
        "name": name,
        "state": state,
        "epoch": 4294967297,
        "execution_id": EXE,
        "reason": "runner silent",
        "changed_at": AT,
    }


def install(*lanes: Json) -> Json:
    return {
        "id": INS,
        "name": "customer-one",
        "labels": {"tier": "gold"},
        "created_at": AT,
        "lanes": lanes,
    }


def enrolment() -> Json:
    return {
        "id": make_id("enr"),
        "queue_id": INS,
        "token": "xce_" + "1" * 52,
        "expires_at": AT,
        "runner_url": "http://127.0.0.1:8701",
    }


def runner() -> Json:
    return {
        "id": RUN,
        "name": "vm-1",
        "queue_id": INS,
        "kind": "install",
        "state": "enrolled",
        "presence": "late",
        "cause": "no sign of life for 13 s",
        "seen_at": AT,
        "version": "0.1.0",
        "protocol": "1.1",
        "capabilities": ["script", "noop"],
        "running": 1,
        "created_at": AT,
        "stats": {
            "load": 0.5,
            "memory_bytes": 73400320,
            "disk_free_bytes": 1073741824,
            "jobs_finished": 7,
        },
    }


def step(
    name: str,
    state: str = "pending",
    *,
    needs: tuple[str, ...] = (),
    kind: str = "job",
    **more: Any,
) -> Json:
    base: Json = {
        "index": 0,
        "name": name,
        "kind": kind,
        "state": state,
        "needs": needs,
        "lanes": [],
        "mutating": False,
        "attempt": 1,
        "digest": "",
        "reason": "",
        "message": "",
        "job_id": None,
        "job_state": None,
        "outputs": {},
        "waiting_for": "",
        "blocked_by": None,
        "started_at": None,
        "finished_at": None,
        "due_at": None,
        "answered_by": None,
    }
    return base | more


def blocker(**more: Any) -> Json:
    base: Json = {
        "lane": "sandbox",
        "job_id": None,
        "workflow_id": None,
        "message": "lane sandbox is in use by job x",
        "hint": "Wait for it, or end it: exclave jobs cancel x",
    }
    return base | more


def plan(state: str = "succeeded", **more: Any) -> Json:
    fields: Json = {"job_id": JOB, "job_state": state, "started_at": AT, "outputs": {"add": 3}}
    if state in {"succeeded", "failed"}:
        fields |= {"finished_at": "2030-01-02T03:04:17Z", "digest": DIGEST}
    return step("plan", "active" if state == "running" else state, **(fields | more))


def gate(state: str = "active") -> Json:
    return step("ok", state, needs=("plan",), kind="gate", digest=DIGEST, started_at=AT)


def workflow(*steps: Json, state: str = "running", revision: int = 1) -> Json:
    shown = steps or (plan(), gate(), step("apply", needs=("ok",), mutating=True))
    return {
        "id": WFL,
        "name": "deploy",
        "queue_id": INS,
        "state": state,
        "approve_all": False,
        "plan_only": False,
        "cancel_requested": False,
        "labels": {},
        "created_at": AT,
        "created_by": "ada",
        "finished_at": None if state == "running" else "2030-01-02T03:04:25Z",
        "revision": revision,
        "steps": [each | {"index": index} for index, each in enumerate(shown)],
    }


def job(state: str = "succeeded", *executions: Json) -> Json:
    return {
        "id": JOB,
        "queue_id": INS,
        "workflow_id": WFL,
        "step": "plan",
        "kind": "script",
        "mutating": True,
        "lanes": ["component:db"],
        "state": state,
        "priority": 0,
        "attempts": 1,
        "cancel_requested_at": None,
        "reason": "completed",
        "message": "",
        "exit_code": 0,
        "outputs": {"add": 3},
        "created_at": AT,
        "finished_at": AT,
        "executions": executions or [execution()],
    }


def execution(number: int = 1) -> Json:
    return {
        "id": make_id("exe", number),
        "runner_id": RUN,
        "state": "ended",
        "epoch": 1,
        "offered_at": AT,
        "started_at": AT,
        "renewed_at": AT,
        "ended_at": AT,
        "reason": "completed",
        "log_bytes": 42,
        "log_complete": True,
    }


def record(n: int, text: str, *, execution_id: str = EXE, **more: Any) -> Json:
    return {
        "execution_id": execution_id,
        "n": n,
        "t_ms": 1893553445000 + n,
        "stream": 1,
        "text": text,
        "offset": (n + 1) * 10,
    } | more


def log_page(*records: Json, complete: bool = True, execution_id: str | None = EXE) -> Json:
    end = records[-1]["offset"] if records else 0
    return {
        "execution_id": execution_id,
        "records": records,
        "next_offset": end,
        "complete": complete,
    }


def match() -> Json:
    return {
        "job_id": JOB,
        "execution_id": EXE,
        "step": "plan",
        "record": record(3, "error: no such bucket"),
    }


def audit() -> Json:
    return {
        "id": make_id("aud"),
        "at": AT,
        "actor": "ada",
        "action": "lane_released",
        "subject": "component:db",
        "detail": {"reason": "checked by hand"},
    }


def page(*items: Json, following: str | None = None) -> Json:
    return {"items": items, "next": following}
