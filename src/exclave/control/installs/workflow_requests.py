"""Start a workflow of an install on a person's request."""

from exclave.appconfig.model.kinds.components import Component
from exclave.base.errors import InvalidInput
from exclave.control.audit import record
from exclave.control.definitions import list_definitions
from exclave.control.deps import Deps
from exclave.control.four_eyes import require_approve_all
from exclave.control.installs.access import get_app_install
from exclave.control.installs.inputs import show_begun
from exclave.control.installs.start_workflow import Request, WorkflowKind, begin_install_workflow
from exclave.domain.four_eyes import Author
from exclave.domain.identity import InstallId, OrgId, Right, User
from exclave.domain.installs import AppInstall
from exclave.storage.engine.database import Tx
from exclave.wire.installs import StartWork
from exclave.wire.workflows import WorkflowReply

_ON_COMPONENTS = frozenset({WorkflowKind.DEPLOY, WorkflowKind.TEARDOWN, WorkflowKind.DRIFT_SCAN})
_PLANNABLE = frozenset(
    {
        WorkflowKind.DEPLOY,
        WorkflowKind.DEPLOY_ALL,
        WorkflowKind.REPROVISION,
        WorkflowKind.REPROVISION_SANDBOX,
    }
)


async def start_work(deps: Deps, user: User, install: InstallId, wish: StartWork) -> WorkflowReply:
    """Check a request and start a workflow of an install."""

    def start(tx: Tx) -> WorkflowReply:
        found = get_app_install(tx, user, install, Right.OPERATE, lock=True)
        if wish.approve_all:
            require_approve_all(tx, user, install)
        workflow = begin_install_workflow(
            tx,
            deps,
            user.org,
            Author.of(user),
            install,
            wish.kind,
            _read_request(tx, user.org, found, wish),
            approve_all=wish.approve_all,
        )
        record(tx, deps, user.org, user.name, "workflow_started", workflow, kind=wish.kind)
        return show_begun(tx, user.org, workflow)

    return await deps.db.write(start, key=install)


def _read_request(tx: Tx, org: OrgId, install: AppInstall, wish: StartWork) -> Request:
    components = tuple(dict.fromkeys(wish.components))
    if components and wish.kind not in _ON_COMPONENTS:
        raise InvalidInput(f"`{wish.kind}` is about the whole install, not about components")
    if wish.plan_only and wish.kind not in _PLANNABLE:
        raise InvalidInput(
            f"`{wish.kind}` cannot only plan",
            hint=f"These can: {', '.join(sorted(_PLANNABLE))}.",
        )
    if wish.kind in {WorkflowKind.DEPLOY, WorkflowKind.TEARDOWN} and not components:
        raise InvalidInput("name the components", hint=f"For all of them use `{wish.kind}_all`.")
    sandbox = wish.sandbox
    if wish.kind is WorkflowKind.DRIFT_SCAN and not components and not sandbox:
        sandbox, components = True, _list_components(tx, org, install)
    return Request(
        components=components,
        sandbox=sandbox,
        dependents=wish.dependents,
        plan_only=wish.plan_only,
    )


def _list_components(tx: Tx, org: OrgId, install: AppInstall) -> tuple[str, ...]:
    return tuple(list_definitions(tx, org, install.config_id, Component))
