from tests.world import *
from exclave.control import workflows as wf
from exclave.wire.workflows import Approve

async def test_a_workflow_runs_from_end_to_end() -> None:
    deps = make_deps(ManualClock())
    user = await make_org(deps)
    queue = await make_install(deps, user)
    peer = await make_peer(deps, user, queue)
    made = await run_workflow(deps, user, queue, job("plan"), gate("ok", "plan"), job("apply", "ok", lanes=["component:a"], mutating=True))
    assert len(await peer.work()) == 1
    shown = await wf.show_workflow(deps, user, made.id)
    await wf.approve_step(deps, user, made.id, "ok", Approve(digest=shown.steps[1].digest))
    assert len(await peer.work()) == 1
    shown = await wf.show_workflow(deps, user, made.id)
    assert shown.state == "succeeded", shown
