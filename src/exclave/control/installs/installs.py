"""Use cases of installs: create, list, show, label, delete, and release their lanes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exclave.base.errors import Conflict
from exclave.control.access import require
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.dispatch.runners import revoke_identity
from exclave.control.four_eyes import refuse_approve_all
from exclave.control.install_state.state import write_state
from exclave.control.installs import replies
from exclave.control.installs.access import get_app_install, get_install
from exclave.control.installs.creation import add_app_install, add_plain_install, find_app_ids
from exclave.control.job_specs.rendering import Renderings, write_rendered
from exclave.control.pagination import clamp, make_page
from exclave.domain.identity import (
    InstallId,
    QueueId,
    Right,
    ScopeKind,
    User,
    allows,
    list_granted,
)
from exclave.domain.install_state import StateDocument
from exclave.domain.installs import AppInstall, ApprovalOption, Install, ManagedBy, is_empty
from exclave.domain.lanes import LaneState, check_lane
from exclave.domain.runners import RunnerState
from exclave.storage import (
    app_installs,
    install_inputs,
    installs,
    queues,
    runners,
    stack_views,
    stacks,
    workflows,
)
from exclave.storage.engine.database import Tx
from exclave.wire.installs import InstallDetail, InstallReply, NewInstall
from exclave.wire.model import Page

_NAMED = 5
"""How many running workflows a refusal names."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter for lists of installs."""

    app: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    state: str | None = None
    name: str | None = None


async def create_install(deps: Deps, user: User, body: NewInstall) -> InstallReply:
    """Create an install and start to provision it."""

    def create(tx: Tx, texts: Renderings) -> InstallReply:
        if body.app is None:
            install = add_plain_install(tx, deps, user, body)
            return replies.summarise_install(get_install(tx, user, install, Right.READ))
        install, workflow = add_app_install(tx, deps, user, body, body.app, texts)
        return replies.summarise_install(get_install(tx, user, install, Right.READ), workflow)

    return await write_rendered(deps, user.org, create)


async def list_installs(
    deps: Deps, user: User, cursor: str, limit: int, wanted: Wanted | None = None
) -> Page[InstallReply]:
    """List the org's installs, or those that the caller has been given."""
    only = None if allows(user, Right.READ) else list_granted(user)
    only_apps = list_granted(user, ScopeKind.APP)
    if only == [] and not only_apps:
        require(user, Right.READ)
    size, asked = clamp(limit), wanted or Wanted()

    def find(tx: Tx) -> Sequence[Install]:
        of_app = None if asked.app is None else find_app_ids(tx, user.org, asked.app)
        chosen = installs.Filter(
            apps=of_app,
            labels=asked.labels,
            state=asked.state,
            name=asked.name,
            only=only,
            only_apps=only_apps,
        )
        return installs.list_installs(tx, user.org, cursor, size + 1, chosen)

    return make_page(await deps.db.read(find), size, replies.summarise_install)


async def show_install(deps: Deps, user: User, install: InstallId) -> InstallDetail:
    """Show an install with its parts, lanes, runners and last workflows."""
    return await deps.db.read(
        lambda tx: replies.show_install(
            tx, deps, user.org, get_install(tx, user, install, Right.READ)
        )
    )


async def release_lane(
    deps: Deps, user: User, install: InstallId, lane: str, reason: str
) -> InstallDetail:
    """Release a lane after a person has checked what a lost job left behind."""
    queue = QueueId(install)

    def release(tx: Tx) -> None:
        get_install(tx, user, install, Right.OPERATE)
        check_lane(lane)
        counter = queues.read_counter(tx, user.org, queue) + 1
        epoch = queues.read_generation(tx) << 32 | counter
        if not queues.release_lane(tx, user.org, queue, lane, epoch):
            raise Conflict(
                f"lane `{lane}` needs no release",
                hint=f"Only a lane in state `{LaneState.NEEDS_RECONCILE}` is released.",
            )
        queues.set_counter(tx, user.org, queue, counter)
        record(tx, deps, user.org, user.name, "lane_released", install, lane=lane, reason=reason)
        tx.wake(f"queue:{queue}")

    await deps.db.write(release, key=queue)
    return await show_install(deps, user, install)


async def set_labels(
    deps: Deps, user: User, install: InstallId, labels: Mapping[str, str]
) -> InstallReply:
    """Replace the labels of an install."""

    def change(tx: Tx) -> InstallReply:
        row = get_install(tx, user, install, Right.OPERATE)
        replace_labels(tx, deps, user, row, labels)
        return replies.summarise_install(get_install(tx, user, install, Right.READ))

    return await deps.db.write(change, key=install)


def replace_labels(
    tx: Tx, deps: Deps, user: User, install: Install, labels: Mapping[str, str]
) -> None:
    """Replace the labels of an install, also where templates read them."""
    installs.set_labels(tx, user.org, install.id, labels)
    if isinstance(install, AppInstall):

        def change(document: StateDocument) -> None:
            document["labels"] = dict(labels)

        write_state(tx, user.org, install.id, "labels", change)
    text = " ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    record(tx, deps, user.org, user.name, "labels_set", install.id, labels=text)


async def set_approve_all(deps: Deps, user: User, install: InstallId, *, on: bool) -> InstallReply:
    """Set whether workflows that start from now on approve all their plans."""

    def change(tx: Tx) -> InstallReply:
        get_app_install(tx, user, install, Right.APPROVE)
        if on:
            refuse_approve_all(tx, user.org)
        approval = ApprovalOption.APPROVE_ALL if on else ApprovalOption.PROMPT
        app_installs.set_approval(tx, user.org, install, approval)
        action = "approve_all_on" if on else "approve_all_off"
        record(tx, deps, user.org, user.name, action, install)
        return replies.summarise_install(get_install(tx, user, install, Right.READ))

    return await deps.db.write(change, key=install)


async def set_managed_by(
    deps: Deps, user: User, install: InstallId, managed_by: ManagedBy
) -> InstallReply:
    """Store whether files or people manage an install."""

    def change(tx: Tx) -> InstallReply:
        get_app_install(tx, user, install, Right.OPERATE)
        app_installs.set_managed_by(tx, user.org, install, managed_by)
        by = managed_by or "people"
        record(tx, deps, user.org, user.name, "management_set", install, by=by)
        return replies.summarise_install(get_install(tx, user, install, Right.READ))

    return await deps.db.write(change, key=install)


async def delete_install(deps: Deps, user: User, install: InstallId, forget: str = "") -> None:
    """Delete an install; `forget` is the reason for doing so while something of it may exist."""

    def delete(tx: Tx) -> None:
        installs.lock_install(tx, user.org, install)
        row = get_install(tx, user, install, Right.OPERATE)
        for runner in runners.list_runners(tx, user.org, "", 1000, QueueId(install)):
            revoke_identity(tx, runner, RunnerState.REVOKED, "its install was deleted")
        queues.lock_queue(tx, user.org, QueueId(install))  # waits for workflows that begin now
        _refuse_in_use(tx, user, row, forget)
        installs.hide_install(tx, user.org, install, row.name)
        install_inputs.forget_sealed(tx, user.org, install)
        workflows.forget_sealed(tx, user.org, QueueId(install))
        stacks.drop_codes(tx, user.org, install)
        stack_views.revoke_views(tx, user.org, install)
        stacks.void_enrolments(tx, user.org, install, tx.now)
        detail = {"name": row.name, **({"forget": forget} if forget else {})}
        record(tx, deps, user.org, user.name, "install_deleted", install, **detail)

    await deps.db.write(delete, key=install)


def _refuse_in_use(tx: Tx, user: User, install: Install, forget: str) -> None:
    running = installs.list_running(tx, user.org, install.id)
    if running:
        several = len(running) > 1
        commands = " && ".join(
            f"exclave workflows cancel {workflow}" for workflow in running[:_NAMED]
        )
        raise Conflict(
            f"{len(running)} workflows of `{install.name}` are running"
            if several
            else f"a workflow of `{install.name}` is running",
            hint=f"Wait for {'them' if several else 'it'}, or cancel: {commands}",
            workflows=running[:20],
        )
    if isinstance(install, AppInstall) and not is_empty(install.state) and not forget:
        raise Conflict(
            f"`{install.name}` is {install.state}:"
            " what it runs at the customer would be left behind",
            hint=f"Use `exclave installs deprovision {install.name}` first, or delete it with"
            " --forget REASON if there is nothing left that matters.",
        )
