"""Stacks: made for a customer to run, fetched by a code, heard of by phone, given up."""

from datetime import datetime, timedelta
from typing import Any

from exclave import __version__
from exclave.base.digests import hash_token
from exclave.base.errors import NotFound
from exclave.control.access import ENROLMENT_TOKEN, hold_token
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.dispatch.runners import revoke_identity
from exclave.control.install_state.state import write_state
from exclave.control.installs.inputs import find_app_install, take_customer_inputs
from exclave.control.job_specs.rendering import Renderings, write_rendered
from exclave.control.progress.stack_waits import answer_waits
from exclave.control.stacks.report_limits import limit_changes
from exclave.control.stacks.runner_package import RunnerPackage, load_package
from exclave.control.stacks.terms import build_outputs, find_owed, list_inputs, read_terms
from exclave.domain.identity import InstallId, OrgId, QueueId, Right, RunnerIdentity, User
from exclave.stacks.local import LocalStack, make_command, make_local_script, make_warning
from exclave.storage import install_states, installs, runners, stacks
from exclave.storage.engine.database import AnyRow, Tx
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
    """Make a fresh Stack for the customer; what was made before and not used is void."""
    code, package = deps.ids.token(CODE), load_package()

    def create(tx: Tx, texts: Renderings) -> StackCreated:
        row = find_app_install(tx, user, install, Right.OPERATE, lock=True)
        version = _find_version(tx, deps, user.org, row)
        stacks.drop_codes(tx, user.org, install)
        hold_token(tx, user)
        token, enrolment, expires = _enrol(
            tx, deps, user.org, install, user.name, parent=user.token
        )
        stacks.add_code(
            tx,
            user.org,
            {
                "id": deps.ids.new("stc"),
                "install_id": install,
                "hash": hash_token(code),
                "enrolment_id": enrolment,
                "created_by": user.name,
                "expires_at": expires,
                "parent_id": user.token,
            },
        )
        record(tx, deps, user.org, user.name, "stack_created", install)
        return StackCreated(
            id=version.id,
            version=version.version,
            expires_at=expires,
            command=make_command(deps.runner_url, code),
            warning=make_warning(deps.runner_url),
            script=_write_script(tx, deps, user.org, row, token, package, texts),
        )

    return await write_rendered(deps, user.org, create, key=install)


async def make_document(deps: Deps, user: User, install: InstallId) -> StackDocument:
    """Make a fresh Stack for a machine of our own: the document without the script."""

    def make(tx: Tx, texts: Renderings) -> StackDocument:
        row = find_app_install(tx, user, install, Right.OPERATE, lock=True)
        _find_version(tx, deps, user.org, row)
        hold_token(tx, user)
        token, _, _ = _enrol(tx, deps, user.org, install, user.name, parent=user.token)
        return _build_document(tx, deps, user.org, row, token, texts)

    return await write_rendered(deps, user.org, make, key=install)


async def show_stack(deps: Deps, user: User, install: InstallId) -> StackReply:
    """Show the newest version of an install's Stack."""

    def show(tx: Tx) -> StackReply:
        find_app_install(tx, user, install, Right.READ)
        row = stacks.find_newest(tx, user.org, install)
        if row is None:
            raise NotFound("the install has no Stack yet")
        return StackReply(
            id=row.id,
            version=row.version,
            state=row.state,
            config_id=row.config_id,
            outputs=row.outputs,
            created_at=row.created_at,
            run_at=row.run_at,
        )

    return await deps.db.read(show)


async def fetch_script(deps: Deps, code: str) -> str:
    """Write the script for whoever has the code, until the runner that it makes has enrolled.

    Each time the token in it is a new one, and the one before is void: a second reader is noticed.
    """
    package = load_package()

    def fetch(tx: Tx, texts: Renderings) -> str:
        found = stacks.find_code(tx, hash_token(code))
        if found is None or found.used_at is not None:
            raise NotFound(_NO_STACK, hint="Ask the vendor for a new one.")
        org = OrgId(found.org_id)
        row = installs.find_install(tx, org, found.install_id)
        if row is None or row.config_id is None:
            raise NotFound(_NO_STACK, hint="Ask the vendor for a new one.")
        token, enrolment, _ = _enrol(
            tx,
            deps,
            org,
            row.id,
            found.created_by,
            parent=found.parent_id,
            expires_at=found.expires_at,
        )
        stacks.point_code(tx, org, found.id, enrolment)
        record(tx, deps, org, found.created_by, "stack_fetched", row.id)
        return _write_script(tx, deps, org, row, token, package, texts)

    org = await deps.db.read(lambda tx: _find_owner(tx, code))
    return await write_rendered(deps, org, fetch)


def _find_owner(tx: Tx, code: str) -> OrgId:
    found = stacks.find_code(tx, hash_token(code), lock=False)
    if found is None:
        raise NotFound(_NO_STACK, hint="Ask the vendor for a new one.")
    return OrgId(found.org_id)


def find_package(file: str) -> RunnerPackage:
    """Find the runner program by its file name; only the present one is served."""
    package = load_package()
    if file != package.file:
        raise NotFound("there is no such file", hint="Ask the vendor for a new Stack.")
    return package


async def report_stack(deps: Deps, who: RunnerIdentity, report: StackReport) -> StackTerms:
    """Take what a Stack says about itself; answer what the app asks of the customer now."""

    def take(tx: Tx, texts: Renderings) -> StackTerms:
        row = installs.find_install(tx, who.org, who.queue, lock=True)
        if row is None or row.config_id is None:
            raise NotFound("this runner's install runs no app")
        terms = read_terms(tx, who.org, row, texts)
        version = _find_version(tx, deps, who.org, row)
        before = install_states.find_app_install(tx, who.org, row.id)
        take_customer_inputs(tx, deps, who.org, row.id, list_inputs(terms, report), who.name)
        owed = find_owed(terms, report)
        _note_report(tx, who, version, build_outputs(terms, report), owed)
        limit_changes(tx, deps, who.org, row.id, before)
        if not owed:
            answer_waits(tx, deps, who.org, who.queue, who.name)
        return terms

    return await write_rendered(deps, who.org, take, key=who.queue)


async def resign_runner(deps: Deps, who: RunnerIdentity) -> Resigned:
    """Close the identity of a runner by its own wish: the customer removes the Stack."""

    def resign(tx: Tx) -> None:
        installs.lock_install(tx, who.org, who.queue)
        version = stacks.find_newest(tx, who.org, who.queue, lock=True)
        row = runners.find_runner(tx, who.org, who.runner, lock=True)
        if version is None or row is None:
            raise NotFound("this runner belongs to no Stack", hint="Its vendor can revoke it.")
        why = "removed by the customer"
        revoke_identity(tx, row, runners.REVOKED, why)
        record(tx, deps, who.org, who.name, "runner_resigned", who.runner)
        stacks.update_version(tx, who.org, version.id, {"state": stacks.REMOVED})
        _write_stack_state(tx, who.org, who.queue, {"status": stacks.REMOVED})
        tx.wake("installs")

    await deps.db.write(resign, key=who.queue)
    return Resigned(runner_id=who.runner)


def _find_version(tx: Tx, deps: Deps, org: OrgId, install: AnyRow) -> AnyRow:
    found = stacks.find_newest(tx, org, install.id, lock=True)
    if found is None:
        stacks.add_version(tx, org, deps.ids.new("stk"), install.id, 1, install.config_id)
        found = stacks.find_newest(tx, org, install.id)
    if found is None:
        raise NotFound("the install has no Stack")
    return found


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
    """Make the one token that is good from now on; answer it, its id and its end."""
    stacks.void_enrolments(tx, org, install, tx.now)
    token, enrolment = deps.ids.token(ENROLMENT_TOKEN), deps.ids.new("enr")
    expires = expires_at or tx.now + timedelta(seconds=deps.timings.enrolment_s)
    runners.add_enrolment(
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


def _write_script(
    tx: Tx,
    deps: Deps,
    org: OrgId,
    install: AnyRow,
    token: str,
    package: RunnerPackage,
    texts: Renderings,
) -> str:
    document = _build_document(tx, deps, org, install, token, texts).model_dump(mode="json")
    return make_local_script(LocalStack(document, package.file, package.sha256))


def _build_document(
    tx: Tx, deps: Deps, org: OrgId, install: AnyRow, token: str, texts: Renderings
) -> StackDocument:
    return StackDocument(
        terms=read_terms(tx, org, install, texts),
        runner_url=deps.runner_url,
        keys=deps.keys.list_public(tx),
        version=__version__,
        enrolment=token,
    )


def _note_report(
    tx: Tx, who: RunnerIdentity, version: AnyRow, outputs: dict[str, Any], owed: list[str]
) -> None:
    state = stacks.INCOMPLETE if owed else stacks.ACTIVE
    told = {**outputs, "owed_inputs": owed} if owed else outputs
    if (version.state, version.outputs) != (state, told):
        values = {"state": state, "outputs": told, "run_at": tx.now}
        stacks.update_version(tx, who.org, version.id, values)
    changes = {"populated": not owed, "status": state, "outputs": outputs}
    _write_stack_state(tx, who.org, who.queue, changes, runner=who.runner)


def _write_stack_state(
    tx: Tx, org: OrgId, install: str, changes: dict[str, Any], runner: str | None = None
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["install_stack"] = {**document["install_stack"], **changes}
        if runner is not None:
            document["runner"] = {**document["runner"], "id": runner, "status": "active"}

    write_state(tx, org, install, "stack", change)
