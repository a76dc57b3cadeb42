"""A workflow of one job, begun by the runner; and a look at how it stands."""

import json

from exclave.control.installs import installs
from exclave.control.workflows import jobs, workflows
from exclave.domain.identity import InstallId
from exclave.domain.jobs import JobId
from exclave.wire.envelope import decode_bytes
from exclave.wire.jobs import JobReply, OutcomeState, Reason
from exclave.wire.roles import RoleWish
from exclave.wire.runner import Offer, Outcome
from exclave.wire.specs import ScriptSpec, ScriptStep
from exclave.wire.workflows import WorkflowReply
from tests.integration.control.conftest import World
from tests.support.world import job, run_workflow

LANE = ["component:a"]

FAILED = Outcome(state=OutcomeState.FAILED, reason=Reason.EXIT_CODE, exit_code=1)

INTERRUPTED = Outcome(state=OutcomeState.INTERRUPTED, reason=Reason.RUNNER_RESTARTED)


async def begin(world: World, *, mutating: bool = False) -> Offer:
    """Run a workflow of one job up to its start."""
    lanes = LANE if mutating else []
    await run_workflow(
        world.deps, world.user, world.queue, job("one", lanes=lanes, mutating=mutating)
    )
    offer = (await world.peer.poll()).offers[0]
    await world.peer.start(offer.execution_id, offer.epoch)
    return offer


async def look(world: World) -> JobReply:
    page = await jobs.list_jobs(
        world.deps, world.user, cursor="", limit=10, queue=None, workflow=None, state=None
    )
    return await jobs.show_job(world.deps, world.user, JobId(page.items[0].id))


async def look_at_flow(world: World) -> WorkflowReply:
    page = await workflows.list_workflows(
        world.deps, world.user, cursor="", limit=1, queue=None, state=None
    )
    return await workflows.show_workflow(world.deps, world.user, page.items[0].id)  # type: ignore[arg-type]


async def lane_states(world: World) -> dict[str, str]:
    shown = await installs.show_install(world.deps, world.user, InstallId(world.queue))
    return {lane.name: lane.state for lane in shown.lanes}


def make_script(*, role: bool) -> ScriptSpec:
    """Return a script, with or without a role in the customer's account."""
    wish = RoleWish(name="acme-maintenance", operation="trigger") if role else None
    return ScriptSpec(steps=[ScriptStep(name="a", script="true")], role=wish)


def has_role(offer: Offer) -> bool:
    """Return whether an offered job is to run with a role."""
    payload = json.loads(decode_bytes(offer.envelope.split(".")[1]))
    return bool(payload["spec"].get("role"))
