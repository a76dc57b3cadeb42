"""Use cases of Stacks: create, show, fetch by code, take reports, resign."""

from datetime import datetime, timedelta

from exclave.base.digests import hash_token
from exclave.base.errors import NotFound
from exclave.base.json_values import JsonObject
from exclave.control.access import ENROLMENT_TOKEN, hold_token
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.dispatch.runners import revoke_identity
from exclave.control.install_state.state import write_state
from exclave.control.installs.access import get_app_install
from exclave.control.installs.inputs import store_customer_inputs
from exclave.control.job_specs.rendering import Renderings, write_rendered
from exclave.control.progress.stack_waits import answer_waits
from exclave.control.stack_versions.versions import find_current
from exclave.control.stacks.cloud_reports import store_cloud_report
from exclave.control.stacks.cloud_stacks import create_cloud_stack
from exclave.control.stacks.files import (
    build_document,
    find_stack,
    show_document,
    show_files,
    show_instructions,
    show_parameters,
)
from exclave.control.stacks.report_limits import limit_changes
from exclave.control.stacks.runner_package import RunnerPackage, load_package
from exclave.control.stacks.terms import (
    build_outputs,
    find_owed,
    list_inputs,
    read_terms,
    show_terms,
)
from exclave.domain.identity import InstallId, OrgId, QueueId, Right, RunnerIdentity, User
from exclave.domain.install_state import StateDocument
from exclave.domain.installs import AppInstall
from exclave.domain.runners import RunnerState
from exclave.domain.stacks import StackCode, StackState, StackVersion
from exclave.stacks.base import StackAddress, StackFile
from exclave.stacks.registry import find_cloud_stack
from exclave.storage import installs, runner_access, runners, stacks
from exclave.storage.engine.database import Tx
from exclave.wire.stacks import (
    Resigned,
    StackCreated,
    StackDocument,
    StackReply,
    StackReport,
    StackTerms,
)

CODE = "xcs"
"""The prefix of the codes that fetch a Stack."""
_NO_STACK = "there is no such Stack, or its code is used up"


async def create_stack(deps: Deps, user: User, install: InstallId) -> StackCreated:
    """Create a Stack for the customer of an install, in a cloud or anywhere else."""
    app_install = await deps.db.read(lambda tx: get_app_install(tx, user, install, Right.OPERATE))
    if find_cloud_stack(app_install.target) is not None:
        return await create_cloud_stack(deps, user, install)
    return await _create_script(deps, user, install)


async def _create_script(deps: Deps, user: User, install: InstallId) -> StackCreated:
    """Create a Stack with a token; files, codes and tokens that were not used are void."""
    code, package = deps.ids.token(CODE), load_package()

    def create(tx: Tx, texts: Renderings) -> StackCreated:
        app_install = get_app_install(tx, user, install, Right.OPERATE, lock=True)
        stack = find_stack(app_install)
        version = _find_version(tx, deps, user.org, app_install)
        stacks.drop_codes(tx, user.org, install)
        hold_token(tx, user)
        token, enrolment, expires = _enrol(
            tx, deps, user.org, install, user.name, parent=user.token
        )
        stored = StackCode(
            org=user.org,
            id=deps.ids.new("stc"),
            install_id=install,
            enrolment_id=enrolment,
            created_by=user.name,
            expires_at=expires,
            parent_id=user.token,
        )
        stacks.add_code(tx, user.org, stored, hash_token(code))
        record(tx, deps, user.org, user.name, "stack_created", install)
        document = build_document(tx, deps, user.org, app_install, token, package, texts)
        address = StackAddress(deps.runner_url, code)
        return StackCreated(
            id=version.id,
            version=version.version,
            cloud=stack.cloud,
            expires_at=expires,
            files=show_files(stack.render(document), address),
            parameters=show_parameters(stack.list_parameters(document.terms)),
            instructions=show_instructions(stack.write_instructions(address)),
        )

    return await write_rendered(deps, user.org, create, key=install)


async def make_document(deps: Deps, user: User, install: InstallId) -> StackDocument:
    """Create a Stack for this machine: the document that its folder keeps, without files."""
    package = load_package()

    def make(tx: Tx, texts: Renderings) -> StackDocument:
        app_install = get_app_install(tx, user, install, Right.OPERATE, lock=True)
        _find_version(tx, deps, user.org, app_install)
        hold_token(tx, user)
        token, _, _ = _enrol(tx, deps, user.org, install, user.name, parent=user.token)
        return show_document(build_document(tx, deps, user.org, app_install, token, package, texts))

    return await write_rendered(deps, user.org, make, key=install)


async def show_stack(deps: Deps, user: User, install: InstallId) -> StackReply:
    """Show the version of an install's Stack that the customer runs, or the newest one."""

    def show(tx: Tx) -> StackReply:
        get_app_install(tx, user, install, Right.READ)
        version = find_current(tx, user.org, install)
        if version is None:
            raise NotFound("the install has no Stack yet")
        return StackReply(
            id=version.id,
            version=version.version,
            state=version.state,
            config_id=version.config_id,
            outputs=dict(version.outputs),
            created_at=version.created_at,
            run_at=version.run_at,
        )

    return await deps.db.read(show)


async def fetch_file(deps: Deps, code: str, name: str) -> StackFile:
    """Return a file of the Stack that a code stands for, until its runner has enrolled.

    Each time the token in it is a new one, and the one before is void: a second reader is noticed.
    """
    package = load_package()

    def fetch(tx: Tx, texts: Renderings) -> StackFile:
        stored = stacks.find_code(tx, hash_token(code))
        if stored is None or stored.is_used:
            raise NotFound(_NO_STACK, hint="Ask the vendor for a new one.")
        org = stored.org
        install = installs.find_install(tx, org, stored.install_id)
        if not isinstance(install, AppInstall):
            raise NotFound(_NO_STACK, hint="Ask the vendor for a new one.")
        token, enrolment, _ = _enrol(
            tx,
            deps,
            org,
            install.id,
            stored.created_by,
            parent=stored.parent_id,
            expires_at=stored.expires_at,
        )
        stacks.point_code(tx, org, stored.id, enrolment)
        record(tx, deps, org, stored.created_by, "stack_fetched", install.id)
        document = build_document(tx, deps, org, install, token, package, texts)
        file = find_stack(install).render(document).find_file(name)
        if file is None:  # nothing is stored: the token before stays good
            raise NotFound(_NO_STACK, hint="Ask the vendor for a new one.")
        return file

    org = await deps.db.read(lambda tx: _find_owner(tx, code))
    return await write_rendered(deps, org, fetch)


def _find_owner(tx: Tx, code: str) -> OrgId:
    """Return the org that a code belongs to."""
    stored = stacks.find_code(tx, hash_token(code), lock=False)
    if stored is None:
        raise NotFound(_NO_STACK, hint="Ask the vendor for a new one.")
    return stored.org


def find_package(file: str) -> RunnerPackage:
    """Return the runner program if it has this file name; only the current one is served."""
    package = load_package()
    if file != package.file:
        raise NotFound("there is no such file", hint="Ask the vendor for a new Stack.")
    return package


async def report_stack(deps: Deps, who: RunnerIdentity, report: StackReport) -> StackTerms:
    """Store what a Stack reports; return what the app asks of the customer now."""

    def store_report(tx: Tx, texts: Renderings) -> StackTerms:
        install = installs.find_install(tx, who.org, who.queue, lock=True)
        if not isinstance(install, AppInstall):
            raise NotFound("this runner's install runs no app")
        terms = read_terms(tx, who.org, install, texts)
        if find_cloud_stack(install.target) is not None:
            store_cloud_report(tx, deps, who, install, terms, report, texts)
            return show_terms(terms)
        version = _find_version(tx, deps, who.org, install)
        store_customer_inputs(tx, deps, who.org, install.id, list_inputs(terms, report), who.name)
        owed = find_owed(terms, report)
        outputs = build_outputs(find_stack(install).read_facts(report.facts), terms, report)
        _store_report(tx, who, version, outputs, owed)
        limit_changes(tx, deps, who.org, install)
        if not owed:
            answer_waits(tx, deps, who.org, who.queue, who.name)
        return show_terms(terms)

    return await write_rendered(deps, who.org, store_report, key=who.queue)


async def resign_runner(deps: Deps, who: RunnerIdentity) -> Resigned:
    """Close the identity of a runner at its own request: the customer removes the Stack."""

    def resign(tx: Tx) -> None:
        installs.lock_install(tx, who.org, who.queue)
        version = find_current(tx, who.org, who.queue, lock=True)
        runner = runners.find_runner(tx, who.org, who.runner, lock=True)
        if version is None or runner is None:
            raise NotFound("this runner belongs to no Stack", hint="Its vendor can revoke it.")
        revoke_identity(tx, runner, RunnerState.REVOKED, "removed by the customer")
        record(tx, deps, who.org, who.name, "runner_resigned", who.runner)
        stacks.set_state(tx, who.org, version.id, StackState.REMOVED)
        write_state(tx, who.org, who.queue, "stack", _mark_removed)
        tx.wake("installs")

    await deps.db.write(resign, key=who.queue)
    return Resigned(runner_id=who.runner)


def _find_version(tx: Tx, deps: Deps, org: OrgId, install: AppInstall) -> StackVersion:
    """Return the newest version of an install's Stack, locked; create the first one if needed."""
    version = stacks.find_newest(tx, org, install.id, lock=True)
    if version is None:
        stacks.add_version(tx, org, deps.ids.new("stk"), install.id, 1, install.config_id)
        version = stacks.find_newest(tx, org, install.id)
    if version is None:
        raise NotFound("the install has no Stack")
    return version


def _enrol(
    tx: Tx,
    deps: Deps,
    org: OrgId,
    install: str,
    by: str,
    *,
    parent: str | None,
    expires_at: datetime | None = None,
) -> tuple[str, str, datetime]:
    """Create the only valid enrolment token of an install; return it, its id and its expiry."""
    stacks.void_enrolments(tx, org, install, tx.now)
    token, enrolment = deps.ids.token(ENROLMENT_TOKEN), deps.ids.new("enr")
    expires = expires_at or tx.now + timedelta(seconds=deps.timings.enrolment_s)
    runner_access.add_enrolment(
        tx,
        org,
        QueueId(install),
        enrolment=enrolment,
        hashed=hash_token(token),
        by=by,
        parent=parent,
        expires_at=expires,
    )
    return token, enrolment, expires


def _store_report(
    tx: Tx, who: RunnerIdentity, version: StackVersion, outputs: JsonObject, owed: list[str]
) -> None:
    """Store the outputs of a report, if they changed, and the state of the install's Stack."""
    state = StackState.INCOMPLETE if owed else StackState.ACTIVE
    reported = {**outputs, "owed_inputs": owed} if owed else outputs
    if (version.state, version.outputs) != (state, reported):
        stacks.store_report(tx, who.org, version.id, state, reported)

    def change(document: StateDocument) -> None:
        document["install_stack"] = {"populated": not owed, "status": state, "outputs": outputs}
        document["runner"]["id"] = who.runner
        document["runner"]["status"] = "active"

    write_state(tx, who.org, who.queue, "stack", change)


def _mark_removed(document: StateDocument) -> None:
    document["install_stack"]["status"] = StackState.REMOVED
