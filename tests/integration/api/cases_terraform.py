"""The routes of Terraform states and of files of executions x every kind of caller."""

from typing import Any

from exclave.control.terraform import states
from exclave.domain.jobs import ExecutionId
from exclave.storage import executions
from exclave.wire.states import LockInfo, LockState, SealedState, StateHeader, StateResource
from tests.integration.api.cases import Call, Make
from tests.integration.api.kit import Enrolled, Site, enrol
from tests.support.files import put_file, put_state
from tests.support.world import job, make_install, run_workflow

_EXE = "/v1/executions/{execution}"
_INS = "/v1/installs/{install}"
_WORKSPACE = "component:db"
_STATE = SealedState(
    header=StateHeader(
        serial=1,
        lineage="line",
        sha256="a" * 64,
        resources=[StateResource(address="t.a", type="t")],
    ),
    sealed=b"sealed",
)


async def begin(site: Site, *, locked: bool = False) -> tuple[Enrolled, str, int, str]:
    """An execution that runs on a lane of a fresh install; with a lock and a state if wished."""
    queue = await make_install(site.deps, site.admin.user, site.deps.ids.new("n").replace("_", "-"))
    own = await enrol(site.deps, site.admin.user, queue)
    step = job("apply", lanes=[_WORKSPACE], mutating=True)
    await run_workflow(site.deps, site.admin.user, queue, step)
    offer = (await own.peer.poll()).offers[0]
    await own.peer.start(offer.execution_id, offer.epoch)
    execution = ExecutionId(offer.execution_id)
    if locked:
        wish = LockState(workspace=_WORKSPACE, epoch=offer.epoch, lock=LockInfo(id="l-1"))
        await states.lock_state(site.deps, own.peer.who, execution, wish)
        await put_state(site.deps, own.peer.who, execution, offer.epoch, _WORKSPACE, "l-1", _STATE)
    return own, offer.execution_id, offer.epoch, queue


def on_execution(path: str, *, locked: bool = False, **rest: Any) -> Make:
    """A call by the runner of an execution; `{epoch}` is filled in."""

    async def make(site: Site) -> Call:
        own, execution, epoch, _ = await begin(site, locked=locked)
        sent = {
            name: {key: epoch if item == "{epoch}" else item for key, item in value.items()}
            if isinstance(value, dict)
            else value
            for name, value in rest.items()
        }
        return Call(path.replace("{execution}", execution), sent, own.token)

    return make


def on_file(path: str) -> Make:
    """A call about a plan that an execution handed in."""

    async def make(site: Site) -> Call:
        own, execution, epoch, _ = await begin(site)
        await put_file(site.deps, own.peer.who, ExecutionId(execution), "plan.json", epoch, b"{}")
        row = await site.deps.db.read(
            lambda tx: executions.find_execution(tx, site.admin.user.org, ExecutionId(execution))
        )
        assert row is not None
        return Call(
            path.replace("{execution}", execution).replace("{job}", row.job_id), {}, own.token
        )

    return make


def on_state(path: str, *, ended: bool = False, **rest: Any) -> Make:
    """A call about the state of an install."""

    async def make(site: Site) -> Call:
        own, execution, epoch, queue = await begin(site, locked=True)
        if ended:
            await own.peer.hand_in(execution, epoch)
        return Call(path.replace("{install}", queue), rest)

    return make


def on_rescued(path: str) -> Make:
    """A call about a state that an execution could not store."""

    async def make(site: Site) -> Call:
        own, execution, epoch, queue = await begin(site)
        name = "errored.tfstate.sealed"
        await put_file(site.deps, own.peer.who, ExecutionId(execution), name, epoch, _STATE.pack())
        await own.peer.hand_in(execution, epoch)
        return Call(
            path.replace("{install}", queue),
            {"json": {"execution_id": execution, "reason": "checked"}},
        )

    return make


_AT = {"epoch": "{epoch}"}
_OF = {**_AT, "workspace": _WORKSPACE}
_LOCK = {**_OF, "lock": {"id": "l-1"}}
_UNLOCK = {**_OF, "lock_id": "l-1"}
_UNLOCK_PATH = f"{_INS}/tf-states/{{workspace}}/unlock"
_READ = "401 401 401 401 200 200 200 200 404 401 401 401 401 401"
_OPERATE = "401 401 401 401 403 200 403 200 404 401 401 401 401 401"
_OWN = "401 401 401 401 401 401 401 401 401 200 404 404 404 401"
_NONE = "401 401 401 401 401 401 401 401 401 204 404 404 404 401"

#     none garb expi revo view oper appr admi othe runr sibl oth build enrol
CONTROL = (
    ("GET", f"{_INS}/tf-states", on_state(f"{_INS}/tf-states"), _READ),
    ("GET", f"{_INS}/tf-states/{{workspace}}", on_state(f"{_INS}/tf-states/{_WORKSPACE}"), _READ),
    ("POST", _UNLOCK_PATH, on_state(_UNLOCK_PATH.replace("{workspace}", _WORKSPACE), ended=True,
                                    json={"reason": "gone"}), _OPERATE),
    ("GET", f"{_INS}/tf-states/{{workspace}}/rescued", on_state(f"{_INS}/tf-states/{_WORKSPACE}/rescued"), _READ),
    ("POST", f"{_INS}/tf-states/{{workspace}}/restore", on_rescued(f"{_INS}/tf-states/{_WORKSPACE}/restore"),
     _OPERATE),
    ("GET", f"{_INS}/orphans", on_state(f"{_INS}/orphans"), _READ),
    ("GET", "/v1/jobs/{job}/attachments/{name}", on_file("/v1/jobs/{job}/attachments/plan.json"), _READ),
)  # fmt: skip
RUNNER = (
    ("GET", f"{_EXE}/state", on_execution(f"{_EXE}/state", locked=True, params=_OF), _OWN),
    ("POST", f"{_EXE}/state", on_execution(f"{_EXE}/state", locked=True, content=_STATE.pack(),
                                           params={**_OF, "lock_id": "l-1"}), _OWN),
    ("POST", f"{_EXE}/state/lock", on_execution(f"{_EXE}/state/lock", json=_LOCK), _NONE),
    ("POST", f"{_EXE}/state/unlock", on_execution(f"{_EXE}/state/unlock", locked=True, json=_UNLOCK), _NONE),
    ("GET", f"{_EXE}/sensitive", on_execution(f"{_EXE}/sensitive", params=_AT), _OWN),
    ("PUT", f"{_EXE}/attachments/{{name}}", on_execution(f"{_EXE}/attachments/plan.json", params=_AT,
                                                         content=b"{}"), _OWN),
    ("GET", f"{_EXE}/attachments/{{name}}", on_file(f"{_EXE}/attachments/plan.json"), _OWN),
)  # fmt: skip
