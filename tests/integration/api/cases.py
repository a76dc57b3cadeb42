"""A call of every route that succeeds for whoever may."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import zstandard

from exclave.control.dispatch import runners
from exclave.control.workflows import jobs, workflows
from exclave.domain.identity import QueueId
from exclave.domain.jobs import JobId
from exclave.domain.workflows import WorkflowId
from exclave.storage import registry_blobs
from exclave.wire.envelope import encode_bytes, public_text
from exclave.wire.logs import Stream, write_record
from exclave.wire.runner import PROTOCOL, token_message
from exclave.wire.workflows import WorkflowReply
from tests.integration.api.kit import Enrolled, Site, enrol, make_enrolment_token
from tests.support.world import gate, job, make_install, run_workflow, wait


@dataclass(frozen=True)
class Call:
    """One request that is fine but for who sends it."""

    path: str
    rest: dict[str, Any] = field(default_factory=dict)
    runner: str = ""
    """The access token of the runner that the thing belongs to."""


Make = Callable[[Site], Awaitable[Call]]


def at(path: str, **rest: Any) -> Make:
    """A call that needs nothing prepared."""

    async def make(site: Site) -> Call:
        return Call(path.replace("{queue}", site.queue), rest)

    return make


async def make_flow(site: Site) -> WorkflowReply:
    """A workflow with an open gate, an open wait and a job that waits for a runner."""
    return await run_workflow(
        site.deps, site.admin.user, site.queue, gate("gate"), wait("wait"), job("job")
    )


def on_flow(path: str, **rest: Any) -> Make:
    """A call on a fresh workflow; `{digest}` in its body is the one that the gate shows."""

    async def make(site: Site) -> Call:
        flow = await make_flow(site)
        body = {
            key: flow.steps[0].digest if value == "{digest}" else value
            for key, value in rest.get("json", {}).items()
        }
        sent = {**rest, "json": body} if "json" in rest else rest
        return Call(path.replace("{workflow}", flow.id), sent)

    return make


def on_job(path: str, **rest: Any) -> Make:
    """A call on a fresh job that waits for a runner."""

    async def make(site: Site) -> Call:
        flow = await make_flow(site)
        return Call(path.replace("{job}", flow.steps[2].job_id or ""), rest)

    return make


async def make_failed_step(site: Site) -> Call:
    flow = await make_flow(site)
    await jobs.cancel_job(site.deps, site.admin.user, JobId(flow.steps[2].job_id or ""))
    return Call(f"/v1/workflows/{flow.id}/steps/job/retry")


@dataclass(frozen=True)
class Running:
    """An execution on an install of its own, by a runner of its own."""

    job: str
    execution: str
    epoch: int
    queue: QueueId
    enrolled: Enrolled


async def make_execution(site: Site, *, start: bool = True) -> Running:
    """Offer a mutating job to a new runner, and let it start."""
    user = site.admin.user
    name = site.deps.ids.new("x").replace("_", "-")
    queue = await make_install(site.deps, user, name)
    enrolled = await enrol(site.deps, user, queue)
    step = job("job", lanes=["sandbox"], mutating=True)
    flow = await run_workflow(site.deps, user, queue, step)
    offer = (await enrolled.peer.poll(1)).offers[0]
    if start:
        await enrolled.peer.start(offer.execution_id, offer.epoch)
    shown = await workflows.show_workflow(site.deps, user, WorkflowId(flow.id))
    return Running(shown.steps[0].job_id or "", offer.execution_id, offer.epoch, queue, enrolled)


async def make_running_job(site: Site) -> Call:
    running = await make_execution(site)
    return Call(f"/v1/jobs/{running.job}/declare-lost", {"json": {"reason": "burnt down"}})


async def make_stopped_lane(site: Site) -> Call:
    running = await make_execution(site)
    await jobs.declare_lost(site.deps, site.admin.user, JobId(running.job), "burnt down")
    path = f"/v1/installs/{running.queue}/lanes/sandbox/release"
    return Call(path, {"json": {"reason": "looked at it"}})


async def make_token_to_revoke(site: Site) -> Call:
    wish = {"name": "old", "account": "somebody", "grants": [{"role": "viewer"}]}
    made = await site.call("POST", "/v1/tokens", json=wish)
    return Call(f"/v1/tokens/{made.json()['id']}")


async def make_token_to_confirm(site: Site) -> Call:
    return Call((await make_token_to_revoke(site)).path + "/confirmed")


async def make_registry_token_to_revoke(site: Site) -> Call:
    made = await site.call("POST", "/v1/registry/tokens", json={"repository": "apps/demo"})
    return Call(f"/v1/registry/tokens/{made.json()['id']}")


async def make_new_name(site: Site) -> Call:
    name = site.deps.ids.new("n").replace("_", "-")
    return Call("", {"json": {"name": name}})


async def make_org_wish(site: Site) -> Call:
    return Call("/v1/orgs", (await make_new_name(site)).rest)


async def make_install_wish(site: Site) -> Call:
    return Call("/v1/installs", (await make_new_name(site)).rest)


async def make_runner_to_revoke(site: Site) -> Call:
    enrolled = await enrol(site.deps, site.admin.user, site.queue)
    return Call(f"/v1/runners/{enrolled.id}/revoke", {"json": {"reason": "was stolen"}})


async def make_runner_to_show(site: Site) -> Call:
    return Call(f"/v1/runners/{site.enrolled.id}")


async def make_workflow_wish(site: Site) -> Call:
    steps = [{"name": "one", "job": {"kind": "noop"}}]
    return Call("/v1/workflows", {"json": {"name": "w", "queue_id": site.queue, "steps": steps}})


async def make_ended_flow(site: Site) -> Call:
    flow = await make_flow(site)
    await workflows.cancel_workflow(site.deps, site.admin.user, WorkflowId(flow.id))
    return Call(f"/v1/workflows/{flow.id}/stream")


async def make_ended_job(site: Site) -> Call:
    flow = await make_flow(site)
    job_id = flow.steps[2].job_id or ""
    await jobs.cancel_job(site.deps, site.admin.user, JobId(job_id))
    return Call(f"/v1/jobs/{job_id}/logs/stream")


async def make_enrol_wish(site: Site) -> Call:
    token = await make_enrolment_token(site.deps, site.admin.user, site.queue)
    wish = {
        "token": token,
        "public_key": public_text(site.enrolled.peer.key),
        "name": "new",
        "version": "1",
        "protocol": PROTOCOL,
        "capabilities": ["noop"],
    }
    return Call("/v1/enrol", {"json": wish})


async def make_token_wish(site: Site) -> Call:
    enrolled = await enrol(site.deps, site.admin.user, site.queue)
    reply = await site.call(
        "POST", "/v1/token/nonce", app="runner", json={"runner_id": enrolled.id}
    )
    nonce = reply.json()["nonce"]
    signature = encode_bytes(enrolled.peer.key.sign(token_message(enrolled.id, nonce, 3)))
    wish = {"runner_id": enrolled.id, "nonce": nonce, "generation": 3, "signature": signature}
    return Call("/v1/token", {"json": wish})


async def make_poll(site: Site) -> Call:
    nonce = site.deps.ids.new("non")
    number = int(site.deps.clock.monotonic()) << 8 | site.deps.ids.randomness.bits(8)
    site.clock.advance(1)
    wish = {
        "boot": 9,
        "no": number,
        "nonce": nonce,
        "free": 0,
        "executions": [],
        "max_hold_s": 0,
        "version": "1",
        "protocol": PROTOCOL,
        "capabilities": ["noop"],
    }
    return Call("/v1/poll", {"json": wish}, site.enrolled.token)


async def make_renewal(site: Site) -> Call:
    wish = (await make_poll(site)).rest["json"]
    body = {"boot": wish["boot"], "no": wish["no"], "executions": []}
    return Call("/v1/renew", {"json": body}, site.enrolled.token)


async def make_start(site: Site) -> Call:
    offered = await make_execution(site, start=False)
    body = {"boot": 1, "no": 9, "epoch": offered.epoch}
    path = f"/v1/executions/{offered.execution}/start"
    return Call(path, {"json": body}, offered.enrolled.token)


async def make_result(site: Site) -> Call:
    running = await make_execution(site)
    outcome = {"state": "succeeded", "reason": "completed"}
    path = f"/v1/executions/{running.execution}/result"
    body = {"epoch": running.epoch, "outcome": outcome}
    return Call(path, {"json": body}, running.enrolled.token)


async def make_log(site: Site) -> Call:
    running = await make_execution(site)
    content = zstandard.compress(write_record(0, 0, Stream.STDOUT, "hello"))
    rest = {
        "params": {"offset": 0, "epoch": running.epoch},
        "content": content,
        "headers": {"Content-Type": "application/zstd"},
    }
    return Call(f"/v1/executions/{running.execution}/log", rest, running.enrolled.token)


async def make_enrolment_wish(site: Site) -> Call:
    await runners.list_runners(site.deps, site.admin.user, "", 1)
    return Call("/v1/enrolments", {"json": {"queue_id": site.queue}})


async def make_repository(site: Site) -> Call:
    org = site.admin.user.org
    await site.deps.db.write(
        lambda tx: registry_blobs.link_blob(tx, org, "apps/demo", "sha256:" + "0" * 64)
    )
    return Call("/v1/registry/tags", {"params": {"repository": "apps/demo"}})


_SCRIPT = {"kind": "script", "steps": [{"name": "s", "script": "id"}]}


async def make_script_wish(site: Site) -> Call:
    """A script that nobody is asked about."""
    steps = [{"name": "one", "job": _SCRIPT}]
    return Call("/v1/workflows", {"json": {"name": "w", "queue_id": site.queue, "steps": steps}})


async def make_gated_script_wish(site: Site) -> Call:
    """A script behind a gate."""
    steps = [{"name": "ask", "kind": "gate"}, {"name": "one", "job": _SCRIPT, "needs": ["ask"]}]
    return Call("/v1/workflows", {"json": {"name": "w", "queue_id": site.queue, "steps": steps}})
