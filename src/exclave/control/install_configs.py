"""Install config files: make installs what their files say, all of them or none."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from exclave.appconfig.kinds.inputs import Input
from exclave.base.errors import Problem
from exclave.control.access import require
from exclave.control.apps import find_app
from exclave.control.deps import Deps
from exclave.control.input_values import fill_values
from exclave.control.install_creation import add_app_install, find_current
from exclave.control.install_inputs import CONFIG, change_inputs
from exclave.control.install_values import list_declared, merge_values, read_values
from exclave.control.installs import replace_labels
from exclave.domain.identity import Right, User
from exclave.storage import install_states, installs
from exclave.storage.database import AnyRow, Tx
from exclave.wire.installs import (
    InstallConfig,
    InstallsSynced,
    InstallSynced,
    NewInstall,
    SetInputs,
    SyncInstalls,
    ValueChange,
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """One file, the install that it is about, and what would change."""

    wish: InstallConfig
    row: AnyRow | None = None
    changes: list[ValueChange] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problem: str = ""
    hint: str = ""

    @property
    def action(self) -> str:
        """What is to be done."""
        if self.problem:
            return "refuse"
        if self.row is None:
            return "create"
        return "update" if self.changes else "none"


async def sync_installs(deps: Deps, user: User, wish: SyncInstalls) -> InstallsSynced:
    """Create and update installs; one that cannot be stops them all."""

    def sync(tx: Tx) -> InstallsSynced:
        app = find_app(tx, user, wish.app, Right.OPERATE)
        if any(each.approve_all for each in wish.installs):
            require(user, Right.APPROVE, app=app.id, noun="app")
        plans = [_plan(tx, deps, user, app, each) for each in _refuse_doubles(wish.installs)]
        stopped = wish.dry_run or any(plan.problem for plan in plans)
        done = {} if stopped else {p.wish.name: _apply(tx, deps, user, app, p) for p in plans}
        return InstallsSynced(
            applied=not stopped,
            installs=[_tell(plan, *done.get(plan.wish.name, (None, None))) for plan in plans],
        )

    return await deps.db.write(sync, key=wish.app)


def _refuse_doubles(wishes: Sequence[InstallConfig]) -> Sequence[InstallConfig]:
    names = [each.name for each in wishes]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise TwoFiles(f"two files are about the install `{doubled[0]}`")
    return wishes


class TwoFiles(Problem):
    """One install has two files, and they cannot both be right."""

    code = "two_files"
    hint = "Keep one of them."


def _plan(tx: Tx, deps: Deps, user: User, app: AnyRow, wish: InstallConfig) -> _Plan:
    row = installs.find_install_named(tx, user.org, wish.name)
    flaw = _find_flaw(row, app)
    if flaw:
        return _Plan(wish, row, problem=flaw[0], hint=flaw[1])
    config_id = find_current(tx, user.org, app).id if row is None else row.config_id
    declared = list_declared(tx, user.org, config_id)
    before = {} if row is None else read_values(tx, deps, user.org, row.id).clear
    try:
        after = merge_values(declared, before, wish.inputs)
    except Problem as problem:
        return _Plan(wish, row, problem=problem.message, hint=problem.advice)
    changes = [
        *_compare_inputs(declared, None if row is None else before, after),
        *_compare_labels(row, wish.labels),
    ]
    was = None if row is None else _show_approval(on=row.approve_all)
    if was != _show_approval(on=wish.approve_all):
        changes.append(_change("approval_option", was, _show_approval(on=wish.approve_all)))
    return _Plan(wish, row, changes, list(_warn(declared, wish)))


def _find_flaw(row: AnyRow | None, app: AnyRow) -> tuple[str, str] | None:
    if row is None:
        return None
    if row.app_id != app.id:
        other = f"of the app `{row.app_name}`" if row.app_id else "without an app"
        return f"there is an install `{row.name}` {other}", "Choose another name."
    if row.managed_by != CONFIG:
        return (
            f"`{row.name}` is managed by hand, not by files",
            f"To let its file decide: exclave installs manage {row.name} by-config",
        )
    return None


def _compare_inputs(
    declared: Sequence[Input], before: Mapping[str, str] | None, after: Mapping[str, str]
) -> Iterator[ValueChange]:
    old = {} if before is None else fill_values(declared, before)
    new = fill_values(declared, after)
    for each in declared:
        if old.get(each.name) == new[each.name] or (before is None and not new[each.name]):
            continue
        was = old.get(each.name) or None
        if each.sensitive:
            yield _change(f"inputs.{each.name}", "***" if was else None, "***")
        else:
            yield _change(f"inputs.{each.name}", was, new[each.name])


def _compare_labels(row: AnyRow | None, labels: Mapping[str, str]) -> Iterator[ValueChange]:
    old = {} if row is None else row.labels
    for key, value in sorted(labels.items()):
        if old.get(key) != value:
            yield _change(f"labels.{key}", old.get(key), value)


def _warn(declared: Sequence[Input], wish: InstallConfig) -> Iterator[str]:
    for each in declared:
        if each.sensitive and each.name in wish.inputs:
            yield f"`{each.name}` is sensitive, and its value stands in the file for all to read"


def _apply(
    tx: Tx, deps: Deps, user: User, app: AnyRow, plan: _Plan
) -> tuple[str | None, str | None]:
    wish, row = plan.wish, plan.row
    if row is None:
        new = NewInstall(
            name=wish.name, app=app.id, labels=wish.labels, inputs=wish.inputs,
            approve_all=wish.approve_all,
        )  # fmt: skip
        install, workflow = add_app_install(tx, deps, user, new, app.id)
        install_states.update_app_install(tx, user.org, install, {"managed_by": CONFIG})
        return install, workflow
    if plan.action == "none":
        return row.id, None
    if row.approve_all != wish.approve_all:
        values = {"approve_all": wish.approve_all}
        install_states.update_app_install(tx, user.org, row.id, values)
    if any(each.what.startswith("labels.") for each in plan.changes):
        replace_labels(tx, deps, user, row, {**row.labels, **wish.labels})
    changed = change_inputs(tx, deps, user, row, SetInputs(values=wish.inputs))
    return row.id, changed.workflow.id if changed.workflow else None


def _tell(plan: _Plan, install: str | None, workflow: str | None) -> InstallSynced:
    return InstallSynced(
        name=plan.wish.name, action=plan.action,
        install_id=install or (plan.row.id if plan.row is not None else None),
        changes=plan.changes, warnings=plan.warnings, problem=plan.problem, hint=plan.hint,
        workflow_id=workflow,
    )  # fmt: skip


def _show_approval(*, on: bool) -> str:
    return "approve-all" if on else "prompt"


def _change(what: str, before: str | None, after: str | None) -> ValueChange:
    return ValueChange(what=what, before=before, after=after)
