"""Sync installs with their config files: all of them or none."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from exclave.appconfig.model.kinds.inputs import Input
from exclave.base.errors import Problem
from exclave.control.apps.apps import find_app
from exclave.control.deps import Deps
from exclave.control.four_eyes import require_approve_all
from exclave.control.install_state.options import (
    compare_options,
    find_flaws,
    is_enabled,
    merge_overrides,
)
from exclave.control.installs.creation import add_app_install, find_current
from exclave.control.installs.input_validation import fill_values
from exclave.control.installs.input_versions import (
    add_dependents,
    list_declared,
    merge_values,
    read_values,
)
from exclave.control.installs.inputs import change_inputs
from exclave.control.installs.installs import replace_labels
from exclave.control.installs.start_workflow import Request, WorkflowKind, begin_install_workflow
from exclave.control.job_specs.rendering import Renderings, write_rendered
from exclave.control.stack_versions.versions import refresh_version
from exclave.domain.apps import App
from exclave.domain.four_eyes import Author
from exclave.domain.identity import Right, User
from exclave.domain.installs import (
    AppInstall,
    ApprovalOption,
    Install,
    ManagedBy,
    Overrides,
    component_of,
    is_empty,
    may_exist,
)
from exclave.storage import app_installs, configs, install_parts, installs
from exclave.storage.engine.database import Tx
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

    file: InstallConfig
    install_id: str | None = None
    """None: it is created."""
    install: AppInstall | None = None
    """None: it is created, or the file is refused."""
    changes: list[ValueChange] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problem: str = ""
    hint: str = ""

    @property
    def action(self) -> str:
        """The action that the plan shows for this install."""
        if self.problem:
            return "refuse"
        if self.install is None:
            return "create"
        return "update" if self.changes else "none"


async def sync_installs(deps: Deps, user: User, body: SyncInstalls) -> InstallsSynced:
    """Create and update installs from their files; if one fails, none is changed."""

    def sync(tx: Tx, texts: Renderings) -> InstallsSynced:
        app = find_app(tx, user, body.app, Right.OPERATE)
        if any(file.approval_option != ApprovalOption.PROMPT for file in body.installs):
            require_approve_all(tx, user, None, app=app.id, noun="app")
        plans = [_plan(tx, deps, user, app, file) for file in _refuse_doubles(body.installs)]
        stopped = body.dry_run or any(plan.problem for plan in plans)
        done = {}
        if not stopped:
            done = {p.file.name: _apply(tx, deps, user, app, p, texts) for p in plans}
        return InstallsSynced(
            applied=not stopped,
            installs=[
                _show_synced(plan, *done.get(plan.file.name, (None, None, None))) for plan in plans
            ],
        )

    return await write_rendered(deps, user.org, sync, key=body.app)


def _refuse_doubles(files: Sequence[InstallConfig]) -> Sequence[InstallConfig]:
    names = [file.name for file in files]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise TwoFiles(f"two files are about the install `{doubled[0]}`")
    return files


class TwoFiles(Problem):
    """Two files are about the same install."""

    code = "two_files"
    hint = "Keep one of them."


def _plan(tx: Tx, deps: Deps, user: User, app: App, file: InstallConfig) -> _Plan:
    namesake = installs.find_install_named(tx, user.org, file.name)
    if namesake is not None and (flaw := _find_flaw(namesake, app)):
        return _Plan(file, namesake.id, problem=flaw[0], hint=flaw[1])
    install = namesake if isinstance(namesake, AppInstall) else None
    if install is not None and (moved := _find_other_place(install, file)):
        return _Plan(file, install.id, problem=moved, hint="An install stays where it is.")
    config_id = find_current(tx, user.org, app).id if install is None else install.config_id
    declared = list_declared(tx, user.org, config_id)
    before = {} if install is None else read_values(tx, deps, user.org, install.id).clear
    plan = _Plan(file, install.id if install else None, install)
    try:
        after = merge_values(declared, before, file.inputs)
    except Problem as problem:
        return replace(plan, problem=problem.message, hint=problem.advice)
    config = configs.find_config(tx, user.org, config_id)
    components = [] if config is None else config.outline["components"]
    toggles = {**({} if install is None else install.toggles), **file.component_toggles}
    flaws = list(find_flaws(components, toggles, file))
    if flaws:
        return replace(plan, problem="; ".join(flaws), hint="Correct the file.")
    changes = [
        *_compare_inputs(declared, None if install is None else before, after),
        *_compare_labels({} if install is None else install.labels, file.labels),
        *compare_options(install, file),
    ]
    return replace(plan, changes=changes, warnings=list(_warn(declared, file)))


def _find_flaw(install: Install, app: App) -> tuple[str, str] | None:
    """Return why an install cannot be changed by a file of this app, and what to do."""
    if not isinstance(install, AppInstall):
        return f"there is an install `{install.name}` without an app", "Choose another name."
    if install.app_id != app.id:
        other = f"of the app `{install.app_name}`"
        return f"there is an install `{install.name}` {other}", "Choose another name."
    if install.managed_by is not ManagedBy.CONFIG:
        return (
            f"`{install.name}` is managed by hand, not by files",
            f"To let its file decide: exclave installs manage {install.name} by-config",
        )
    return None


def _find_other_place(install: AppInstall, file: InstallConfig) -> str:
    """Return how the place in a file differs from that of its install; empty if it does not."""
    for noun, now in install.place._asdict().items():
        wanted = getattr(file, noun).lower()
        if wanted and wanted != now:
            return f"the {noun} in the file is `{wanted}`, and that of the install is `{now}`"
    return ""


def _compare_inputs(
    declared: Sequence[Input], before: Mapping[str, str] | None, after: Mapping[str, str]
) -> Iterator[ValueChange]:
    old = {} if before is None else fill_values(declared, before)
    new = fill_values(declared, after)
    for declaration in declared:
        if old.get(declaration.name) == new[declaration.name] or (
            before is None and not new[declaration.name]
        ):
            continue
        was = old.get(declaration.name) or None
        if declaration.sensitive:
            yield _change(f"inputs.{declaration.name}", "***" if was else None, "***")
        else:
            yield _change(f"inputs.{declaration.name}", was, new[declaration.name])


def _compare_labels(old: Mapping[str, str], labels: Mapping[str, str]) -> Iterator[ValueChange]:
    for key, value in sorted(labels.items()):
        if old.get(key) != value:
            yield _change(f"labels.{key}", old.get(key), value)


def _warn(declared: Sequence[Input], file: InstallConfig) -> Iterator[str]:
    for declaration in declared:
        if declaration.sensitive and declaration.name in file.inputs:
            name = declaration.name
            yield f"`{name}` is sensitive, and its value stands in the file for all to read"


def _apply(
    tx: Tx, deps: Deps, user: User, app: App, plan: _Plan, texts: Renderings
) -> tuple[str | None, str | None, str | None]:
    file, app_install, by = plan.file, plan.install, Author.of(user)
    if app_install is None:
        new = NewInstall(
            name=file.name,
            app=app.id,
            labels=file.labels,
            inputs=file.inputs,
            approve_all=file.approval_option == ApprovalOption.APPROVE_ALL,
            provision=False,
            region=file.region,
            account=file.account,
            tenant=file.tenant,
        )
        install, _ = add_app_install(tx, deps, user, new, app.id, texts)
        _store_options(tx, user, install, file, {}, {})
        kind = WorkflowKind.PROVISION
        return install, begin_install_workflow(tx, deps, user.org, by, install, kind), None
    if plan.action == "none":
        return app_install.id, None, None
    _store_options(tx, user, app_install.id, file, app_install.overrides, app_install.toggles)
    if any(change.what.startswith("labels.") for change in plan.changes):
        replace_labels(tx, deps, user, app_install, {**app_install.labels, **file.labels})
    again, off = _find_moved(tx, user, app_install, plan)
    changed = change_inputs(tx, deps, user, app_install, SetInputs(values=file.inputs), again)
    refresh_version(tx, deps, user.org, app_install.id, texts)
    gone = None
    if off:
        kind, request = WorkflowKind.TEARDOWN, Request(components=off)
        gone = begin_install_workflow(tx, deps, user.org, by, app_install.id, kind, request)
    return app_install.id, changed.workflow.id if changed.workflow else None, gone


def _store_options(
    tx: Tx,
    user: User,
    install: str,
    file: InstallConfig,
    overrides: Overrides,
    toggles: Mapping[str, bool],
) -> None:
    app_installs.set_options(
        tx,
        user.org,
        install,
        managed_by=ManagedBy.CONFIG,
        approval=file.approval_option,
        toggles={**toggles, **file.component_toggles},
        overrides=merge_overrides(overrides, file),
    )


def _find_moved(
    tx: Tx, user: User, install: AppInstall, plan: _Plan
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the components that changed options deploy, and those that they tear down."""
    if is_empty(install.state):
        return (), ()
    there = {
        component_of(part.name)
        for part in install_parts.list_parts(tx, user.org, install.id)
        if may_exist(part.state)
    }
    config = configs.find_config(tx, user.org, install.config_id)
    components = [] if config is None else config.outline["components"]
    toggles = {**install.toggles, **plan.file.component_toggles}
    enabled = {component["name"] for component in components if is_enabled(component, toggles)}
    named = {
        change.what.split(".")[1] for change in plan.changes if change.what.startswith("component")
    }
    again = add_dependents(config.outline, named & enabled) if config is not None else []
    off = [component["name"] for component in components if component["name"] in there - enabled]
    return tuple(name for name in again if name in enabled), tuple(off)


def _show_synced(
    plan: _Plan, install: str | None, workflow: str | None, teardown: str | None
) -> InstallSynced:
    return InstallSynced(
        name=plan.file.name,
        action=plan.action,
        install_id=install or plan.install_id,
        changes=plan.changes,
        warnings=plan.warnings,
        problem=plan.problem,
        hint=plan.hint,
        workflow_id=workflow,
        teardown_id=teardown,
    )


def _change(what: str, before: str | None, after: str | None) -> ValueChange:
    return ValueChange(what=what, before=before, after=after)
