"""Use cases of inputs: show them, set them, and redeploy what reads the changed ones."""

from collections.abc import Mapping, Sequence

from exclave.appconfig.model.kinds.inputs import Input, InputGroup
from exclave.base.errors import Conflict, NotFound
from exclave.control.audit import record
from exclave.control.definitions import list_definitions
from exclave.control.deps import Deps
from exclave.control.four_eyes import require_approve_all
from exclave.control.installs import input_validation
from exclave.control.installs.access import get_app_install
from exclave.control.installs.input_versions import (
    find_changed,
    find_touched,
    list_declared,
    merge_values,
    put_into_state,
    read_values,
    store_values,
)
from exclave.control.installs.start_workflow import Request, WorkflowKind, begin_install_workflow
from exclave.control.job_specs.rendering import Renderings, write_rendered
from exclave.control.stack_versions.versions import refresh_version
from exclave.control.workflows import replies
from exclave.domain.four_eyes import NOBODY, Author
from exclave.domain.identity import InstallId, OrgId, Right, User
from exclave.domain.installs import AppInstall, ManagedBy, may_exist
from exclave.domain.workflows import WorkflowId
from exclave.storage import (
    install_parts,
    installs,
    steps,
    workflows,
)
from exclave.storage.engine.database import Tx
from exclave.wire.installs import (
    InputGroupReply,
    InputReply,
    InputsChanged,
    InputsReply,
    SetInputs,
)
from exclave.wire.workflows import WorkflowReply


async def show_inputs(
    deps: Deps, user: User, install: InstallId, version: int | None = None
) -> InputsReply:
    """Show the inputs of an install by group; sensitive values are not in the answer."""

    def show(tx: Tx) -> InputsReply:
        app_install = get_app_install(tx, user, install, Right.READ)
        values = read_values(tx, deps, user.org, install, version)
        if version is not None and values.stored is None:
            raise NotFound("there is no such version of the inputs")
        groups = list_definitions(tx, user.org, app_install.config_id, InputGroup)
        return InputsReply(
            version=values.version,
            at=values.stored.at if values.stored else None,
            by=values.stored.by if values.stored else "",
            groups=[_show_group(group) for group in groups.values()],
            inputs=[
                _show_input(declaration, values.clear)
                for declaration in list_declared(tx, user.org, app_install.config_id)
            ],
        )

    return await deps.db.read(show)


async def set_inputs(deps: Deps, user: User, install: InstallId, body: SetInputs) -> InputsChanged:
    """Set inputs and start a workflow that redeploys what reads them."""

    def change(tx: Tx, texts: Renderings) -> InputsChanged:
        app_install = get_app_install(tx, user, install, Right.OPERATE, lock=True)
        if app_install.managed_by is ManagedBy.CONFIG:
            raise Conflict(
                "the inputs of this install come from its file",
                hint="Change the file and use `exclave installs sync`, or take the install back"
                " with `exclave installs manage INSTALL by-hand`.",
            )
        if body.approve_all:
            require_approve_all(tx, user, install)
        changed = change_inputs(tx, deps, user, app_install, body)
        if not body.dry_run:
            refresh_version(tx, deps, user.org, install, texts)
        return changed

    return await write_rendered(deps, user.org, change, key=install)


def change_inputs(
    tx: Tx,
    deps: Deps,
    user: User,
    install: AppInstall,
    request: SetInputs,
    again: Sequence[str] = (),
) -> InputsChanged:
    """Check, store and redeploy in the transaction of the caller, which holds the install.

    The components in `again` are deployed as well: something else of theirs has changed.
    """
    declared = list_declared(tx, user.org, install.config_id)
    before = read_values(tx, deps, user.org, install.id)
    after = merge_values(
        declared, before.clear, request.values, request.unset, install=install.name
    )
    changed = find_changed(declared, before.clear, after)
    by = Author.of(user)
    if not request.dry_run and after == before.clear and again:
        workflow = begin_update(tx, deps, user.org, by, install, (), request.approve_all, again)
        return _show_change(tx, user.org, install, before.version, changed, workflow)
    if request.dry_run or after == before.clear:
        return _show_change(tx, user.org, install, before.version, changed, None)
    version = store_values(tx, deps, user.org, install.id, declared, after, user.name)
    put_into_state(tx, user.org, install.id, declared, after)
    record(
        tx,
        deps,
        user.org,
        user.name,
        "inputs_set",
        install.id,
        version=str(version),
        inputs=" ".join(sorted({*request.values, *request.unset})),
    )
    workflow = begin_update(tx, deps, user.org, by, install, changed, request.approve_all, again)
    return _show_change(tx, user.org, install, version, changed, workflow)


def store_customer_inputs(
    tx: Tx, deps: Deps, org: OrgId, install: str, values: Mapping[str, str], by: str
) -> list[str]:
    """Store the values that the customer's Stack reports for the inputs that the customer owns.

    A sensitive one stays there: its value is the placeholder that the runner fills in.
    """
    app_install = installs.find_install(tx, org, install, lock=True)
    if not isinstance(app_install, AppInstall):
        raise NotFound("there is no such install of an app")
    declared = list_declared(tx, org, app_install.config_id)
    known = {declaration.name for declaration in declared if declaration.user_configurable}
    plain = {declaration.name for declaration in declared if not declaration.sensitive}
    given = {name: text for name, text in values.items() if name in known}
    checked = [declaration for declaration in declared if declaration.name in plain]
    input_validation.check_values(
        checked, {name: text for name, text in given.items() if name in plain}, by_customer=True
    )
    before = read_values(tx, deps, org, install)
    after = {**before.clear, **given}
    changed = find_changed(declared, before.clear, after)
    if after != before.clear:
        store_values(tx, deps, org, install, declared, after, by)
        put_into_state(tx, org, install, declared, after)
    if changed:
        begin_update(tx, deps, org, Author(by, NOBODY), app_install, changed, None)
    return changed


def begin_update(
    tx: Tx,
    deps: Deps,
    org: OrgId,
    by: Author,
    install: AppInstall,
    changed: Sequence[str],
    approve_all: bool | None,  # noqa: FBT001 - None is the third answer
    again: Sequence[str] = (),
) -> WorkflowId | None:
    """Start the workflow that redeploys what reads changed inputs; None if nothing does."""
    sandbox, components = find_touched(tx, org, install.config_id, changed)
    parts = install_parts.list_parts(tx, org, install.id)
    here = {part.name for part in parts if may_exist(part.state)}
    touched = {f"component:{name}" for name in components} | ({"sandbox"} if sandbox else set())
    if not again and (not changed or not touched & here):
        return None
    request = Request(components=tuple({*components, *again}), sandbox=sandbox)
    kind = WorkflowKind.INPUT_UPDATE
    return begin_install_workflow(
        tx, deps, org, by, install.id, kind, request, approve_all=approve_all
    )


def show_begun(tx: Tx, org: OrgId, workflow: WorkflowId) -> WorkflowReply:
    """Show a workflow that this transaction began."""
    begun = workflows.find_workflow(tx, org, workflow)
    if begun is None:
        raise NotFound("there is no such workflow")
    return replies.show_workflow(begun, steps.list_steps(tx, org, begun.id))


def _show_change(
    tx: Tx,
    org: OrgId,
    install: AppInstall,
    version: int,
    changed: list[str],
    workflow: WorkflowId | None,
) -> InputsChanged:
    sandbox, components = find_touched(tx, org, install.config_id, changed)
    return InputsChanged(
        version=version,
        changed=changed,
        sandbox=sandbox,
        components=components,
        workflow=None if workflow is None else show_begun(tx, org, workflow),
    )


def _show_group(group: InputGroup) -> InputGroupReply:
    return InputGroupReply(
        name=group.name, display_name=group.display_name, description=group.description
    )


def _show_input(declared: Input, values: Mapping[str, str]) -> InputReply:
    value = values.get(declared.name, declared.default or "")
    return InputReply(
        name=declared.name,
        group=declared.group,
        display_name=declared.display_name,
        description=declared.description,
        type=declared.type,
        value=None if declared.sensitive else value,
        is_set=declared.name in values,
        default=None if declared.sensitive else declared.default,
        required=declared.required,
        sensitive=declared.sensitive,
        owner="customer" if declared.user_configurable else "vendor",
    )
