"""Move an install to another config version of its app."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exclave.appconfig.model.kinds.inputs import Input
from exclave.appconfig.model.kinds.secrets import Secret
from exclave.base.errors import Conflict, NotFound, Problem
from exclave.control.apps.unapproved_content import list_unasked, require_unasked
from exclave.control.audit import record
from exclave.control.definitions import list_definitions
from exclave.control.deps import Deps
from exclave.control.four_eyes import require_approve_all
from exclave.control.install_state.state import write_state
from exclave.control.installs import input_validation
from exclave.control.installs.access import get_app_install
from exclave.control.installs.creation import require_same_cloud
from exclave.control.installs.input_versions import (
    find_touched,
    list_declared,
    merge_values,
    read_values,
    store_values,
)
from exclave.control.installs.inputs import show_begun
from exclave.control.installs.replies import read_hashes
from exclave.control.installs.start_workflow import Request, WorkflowKind, begin_install_workflow
from exclave.control.job_specs.rendering import Renderings, write_rendered
from exclave.control.progress.install_endings import start_schedules
from exclave.control.stack_versions.versions import refresh_version
from exclave.domain.configs import Config
from exclave.domain.four_eyes import Author
from exclave.domain.identity import InstallId, OrgId, Right, User
from exclave.domain.install_state import StateDocument, add_components
from exclave.domain.installs import AppInstall, InstallState, PartState, may_exist, takes_deploys
from exclave.domain.lanes import POLICIES
from exclave.domain.workflows import WorkflowId
from exclave.stacks.registry import find_cloud_stack
from exclave.storage import app_installs, configs, install_parts, stacks
from exclave.storage.engine.database import Tx
from exclave.wire.installs import Obstacle, PartChange, Upgrade, UpgradeReply

_OWN_HASH = frozenset({"component", "sandbox", "install", "installs_source", "branch"})
"""Sections that are compared otherwise, or say nothing about installs."""


@dataclass(frozen=True, slots=True)
class _Move:
    """The move of an install to a config, with its consequences."""

    install: AppInstall
    target: Config
    values: Mapping[str, str]
    hidden: Mapping[str, str]
    changed_inputs: list[str]
    dropped_inputs: list[str]
    parts: list[PartChange]
    new_stack: bool
    obstacles: list[Problem]
    """The problems to solve before the install can be moved."""


async def upgrade_install(
    deps: Deps, user: User, install: InstallId, body: Upgrade
) -> UpgradeReply:
    """Move an install to a config, and deploy what differs if asked to."""

    def upgrade(tx: Tx, texts: Renderings) -> UpgradeReply:
        app_install = get_app_install(tx, user, install, Right.OPERATE, lock=True)
        if body.approve_all:
            require_approve_all(tx, user, install)
        move = _plan_move(tx, deps, user, app_install, body)
        if body.dry_run:
            return _show_upgrade(move)
        _refuse_unasked(tx, user, move)
        if move.obstacles:
            raise move.obstacles[0]
        _move(tx, deps, user, move, texts)
        workflow = _deploy(tx, deps, user, move, body) if body.deploy else None
        begun = None if workflow is None else show_begun(tx, user.org, workflow)
        return _show_upgrade(move).model_copy(update={"workflow": begun})

    return await write_rendered(deps, user.org, upgrade, key=install)


def _refuse_unasked(tx: Tx, user: User, move: _Move) -> None:
    """Refuse an older config to who may not approve, if it does more without asking.

    The newest config was checked when it was synced; an older one may have been left for a reason.
    """
    newest, target = move.install.newest_id, move.target.id
    if newest == target:
        return
    unasked = list_unasked(
        configs.list_all_parts(tx, user.org, newest), configs.list_all_parts(tx, user.org, target)
    )
    if unasked:
        require_unasked(tx, user, unasked, install=move.install.id)


def _plan_move(tx: Tx, deps: Deps, user: User, install: AppInstall, body: Upgrade) -> _Move:
    target = _find_target(tx, user.org, install, body.config)
    require_same_cloud(install, target)
    declared = list_declared(tx, user.org, target.id)
    before = read_values(tx, deps, user.org, install.id).clear
    old = input_validation.fill_values(list_declared(tx, user.org, install.config_id), before)
    after, flaw = _merge_inputs(declared, before, body.inputs)
    new = input_validation.fill_values(declared, after)
    known = {declaration.name for declaration in declared}
    parts = _compare_parts(tx, user.org, install, target) + _compare_rest(
        tx, user.org, install, target
    )
    orphans = _find_orphans(tx, user.org, install, target, parts)
    return _Move(
        install=install,
        target=target,
        values=after,
        hidden=input_validation.hide_values(declared, after),
        changed_inputs=[name for name in new if old.get(name) != new[name]],
        dropped_inputs=sorted(set(before) - known),
        parts=parts,
        new_stack=find_cloud_stack(install.target) is None
        and _asks_more(tx, user.org, install.config_id, target.id),
        obstacles=[obstacle for obstacle in (flaw, orphans) if obstacle is not None],
    )


def _merge_inputs(
    declared: Sequence[Input], before: Mapping[str, str], given: Mapping[str, str]
) -> tuple[dict[str, str], Problem | None]:
    """Merge given values into the current ones; return what the new config refuses of them."""
    try:
        after = merge_values(declared, before, given)
        input_validation.check_types(declared, after)
    except input_validation.BadInputs as flaw:
        flaw.advice = f"Give values: {' '.join(f'--input {name}=…' for name in flaw.inputs)}"
        return {**before, **given}, flaw
    return after, None


def _find_target(tx: Tx, org: OrgId, install: AppInstall, version: int | None) -> Config:
    if version is None:
        target = configs.find_config(tx, org, install.newest_id)
    else:
        target = configs.find_version(tx, org, install.app_id, version)
    if target is None:
        raise NotFound(
            f"the app `{install.app_name}` has no config {version}",
            hint=f"`exclave apps configs {install.app_name}` lists them.",
        )
    return target


def _compare_parts(tx: Tx, org: OrgId, install: AppInstall, target: Config) -> list[PartChange]:
    """Compare with what is deployed; with the install's config where nothing is.

    Of a part whose last deploy failed nobody knows how much of which config it has: it differs.
    """
    base = dict(read_hashes(tx, org, install.config_id))
    for part in install_parts.list_parts(tx, org, install.id):
        if part.name == POLICIES:  # compared one by one, with the rest of the config
            continue
        if part.state is PartState.FAILED:
            base[part.name] = ""
        elif may_exist(part.state) and part.config_id:
            deployed = read_hashes(tx, org, part.config_id).get(part.name)
            base[part.name] = deployed or base.get(part.name, "")
    return _compare(base, read_hashes(tx, org, target.id))


def _compare_rest(tx: Tx, org: OrgId, install: AppInstall, target: Config) -> list[PartChange]:
    def read(config_id: str) -> dict[str, str]:
        rows = configs.list_all_parts(tx, org, config_id)
        return {
            f"{part.section}:{part.name}" if part.name else part.section: part.hash
            for part in rows
            if part.section not in _OWN_HASH
        }

    return _compare(read(install.config_id), read(target.id))


def _compare(old: Mapping[str, str], new: Mapping[str, str]) -> list[PartChange]:
    changes = [
        PartChange(part=part, change="added" if part not in old else "changed")
        for part, hashed in new.items()
        if old.get(part) != hashed
    ]
    return changes + [PartChange(part=part, change="removed") for part in old if part not in new]


def _asks_more(tx: Tx, org: OrgId, old: str, new: str) -> bool:
    """Whether the customer is asked for something that their Stack does not know yet."""

    def read(config_id: str) -> set[str]:
        secrets = set(list_definitions(tx, org, config_id, Secret))
        inputs = list_declared(tx, org, config_id)
        return secrets | {
            f"input {declaration.name}" for declaration in inputs if declaration.user_configurable
        }

    return bool(read(new) - read(old))


def _find_orphans(
    tx: Tx, org: OrgId, install: AppInstall, target: Config, parts: Sequence[PartChange]
) -> Problem | None:
    """Return the problem of deployed parts that the new config does not have."""
    here = {
        part.name for part in install_parts.list_parts(tx, org, install.id) if may_exist(part.state)
    }
    gone = [change.part for change in parts if change.change == "removed" and change.part in here]
    if not gone:
        return None
    names = " ".join(part.removeprefix("component:") for part in gone)
    return Conflict(
        f"config {target.version} has no {', '.join(gone)}, which `{install.name}` runs",
        hint=f"Tear it down first: exclave installs teardown {install.name} {names}",
        parts=gone,
    )


def _move(tx: Tx, deps: Deps, user: User, move: _Move, texts: Renderings) -> None:
    org, install, target = user.org, move.install, move.target
    if install.config_id == target.id and not move.changed_inputs:
        return
    app_installs.set_config(tx, org, install.id, target.id, user.person)
    tx.wake(f"stack:{install.id}")
    if move.changed_inputs or move.dropped_inputs:
        declared = list_declared(tx, org, target.id)
        store_values(tx, deps, org, install.id, declared, move.values, user.name)

    def change(document: StateDocument) -> None:
        document["inputs"] = {"inputs": dict(move.hidden)}
        add_components(document, [component["name"] for component in target.outline["components"]])

    write_state(tx, org, install.id, f"config {target.version}", change)
    if install.state is InstallState.ACTIVE:
        start_schedules(tx, deps, org, install.id)
    if find_cloud_stack(install.target) is not None:
        refresh_version(tx, deps, org, install.id, texts)
    elif move.new_stack:
        newest = stacks.find_newest(tx, org, install.id, lock=True)
        version = 1 if newest is None else newest.version + 1
        stacks.add_version(tx, org, deps.ids.new("stk"), install.id, version, target.id)
    record(
        tx,
        deps,
        org,
        user.name,
        "install_upgraded",
        install.id,
        before=str(install.config_version),
        after=str(target.version),
    )


def _deploy(tx: Tx, deps: Deps, user: User, move: _Move, body: Upgrade) -> WorkflowId | None:
    """Start the workflow that deploys what differs; None if nothing does."""
    org, install = user.org, move.install
    if not takes_deploys(install.state):
        raise Conflict(
            f"`{install.name}` is {install.state}: there is nothing to deploy to",
            hint="Leave --deploy out, or provision it first.",
        )
    sandbox, read = find_touched(tx, org, move.target.id, move.changed_inputs)
    changed = {change.part for change in move.parts if change.change != "removed"}
    names = {part.removeprefix("component:") for part in changed if part.startswith("component:")}
    names |= set(read)
    request = Request(components=tuple(sorted(names)), dependents=True, new_stack=move.new_stack)
    if sandbox or "sandbox" in changed:
        kind, request = WorkflowKind.REPROVISION_SANDBOX, Request(new_stack=move.new_stack)
    elif names:
        kind = WorkflowKind.DEPLOY
    elif any(change.part.startswith("secret:") for change in move.parts):
        kind, request = WorkflowKind.SYNC_SECRETS, Request(new_stack=move.new_stack)
    else:
        return None
    return begin_install_workflow(
        tx, deps, org, Author.of(user), install.id, kind, request, approve_all=body.approve_all
    )


def _show_upgrade(move: _Move) -> UpgradeReply:
    return UpgradeReply(
        install_id=move.install.id,
        name=move.install.name,
        from_version=move.install.config_version,
        to_version=move.target.version,
        parts=move.parts,
        dropped_inputs=move.dropped_inputs,
        changed_inputs=move.changed_inputs,
        new_stack=move.new_stack,
        obstacles=[
            Obstacle(message=problem.message, hint=problem.advice) for problem in move.obstacles
        ],
    )
