"""Start a workflow of an install on a person's request."""

from exclave.appconfig.model.kinds.components import Component
from exclave.base.errors import InvalidInput
from exclave.control.audit import record
from exclave.control.definitions import list_definitions
from exclave.control.deps import Deps
from exclave.control.four_eyes import require_approve_all
from exclave.control.installs.access import get_app_install
from exclave.control.installs.inputs import show_begun
from exclave.control.installs.rollbacks import find_earlier_plan, refuse_outside_cluster
from exclave.control.installs.start_workflow import Request, WorkflowKind, begin_install_workflow
from exclave.domain.four_eyes import Author
from exclave.domain.identity import InstallId, OrgId, Right, User
from exclave.domain.installs import AppInstall
from exclave.domain.intents import StoredPlan
from exclave.storage.engine.database import Tx
from exclave.wire.installs import StartWork
from exclave.wire.workflows import WorkflowReply

_ON_COMPONENTS = frozenset({WorkflowKind.DEPLOY, WorkflowKind.TEARDOWN, WorkflowKind.DRIFT_SCAN})
_DEPLOYS = frozenset({WorkflowKind.DEPLOY, WorkflowKind.DEPLOY_ALL})
_PLANNABLE = frozenset(
    {
        WorkflowKind.DEPLOY,
        WorkflowKind.DEPLOY_ALL,
        WorkflowKind.REPROVISION,
        WorkflowKind.REPROVISION_SANDBOX,
    }
)


async def start_work(deps: Deps, user: User, install: InstallId, body: StartWork) -> WorkflowReply:
    """Check a request and start a workflow of an install."""

    def start(tx: Tx) -> WorkflowReply:
        app_install = get_app_install(tx, user, install, Right.OPERATE, lock=True)
        if body.approve_all:
            require_approve_all(tx, user, install)
        workflow = begin_install_workflow(
            tx,
            deps,
            user.org,
            Author.of(user),
            install,
            body.kind,
            _read_request(tx, user.org, app_install, body),
            approve_all=body.approve_all,
        )
        record(tx, deps, user.org, user.name, "workflow_started", workflow, kind=body.kind)
        if body.adopt:
            adopted = {"component": body.components[0], "workflow": workflow}
            record(tx, deps, user.org, user.name, "component_adopted", install, **adopted)
        return show_begun(tx, user.org, workflow)

    return await deps.db.write(start, key=install)


def _read_request(tx: Tx, org: OrgId, install: AppInstall, body: StartWork) -> Request:
    components = tuple(dict.fromkeys(body.components))
    if components and body.kind not in _ON_COMPONENTS:
        raise InvalidInput(f"`{body.kind}` is about the whole install, not about components")
    if body.plan_only and body.kind not in _PLANNABLE:
        raise InvalidInput(
            f"`{body.kind}` cannot only plan",
            hint=f"These can: {', '.join(sorted(_PLANNABLE))}.",
        )
    if body.kind in {WorkflowKind.DEPLOY, WorkflowKind.TEARDOWN} and not components:
        raise InvalidInput("name the components", hint=f"For all of them use `{body.kind}_all`.")
    sandbox = body.sandbox
    if body.kind is WorkflowKind.DRIFT_SCAN and not components and not sandbox:
        sandbox, components = True, _list_components(tx, org, install)
    return Request(
        components=components,
        sandbox=sandbox,
        dependents=body.dependents,
        plan_only=body.plan_only,
        adopt=_check_adopt(tx, org, install, body, components),
        rollback_to=_find_rollback(tx, org, install, body, components),
        take_over=_check_take_over(body),
    )


def _find_rollback(
    tx: Tx, org: OrgId, install: AppInstall, body: StartWork, components: tuple[str, ...]
) -> StoredPlan | None:
    if body.rollback_to is None:
        return None
    if body.kind is not WorkflowKind.DEPLOY or len(components) != 1 or body.plan_only:
        raise InvalidInput("a rollback is a deploy of exactly one component")
    return find_earlier_plan(tx, org, install, components[0], body.rollback_to)


def _check_adopt(
    tx: Tx, org: OrgId, install: AppInstall, body: StartWork, components: tuple[str, ...]
) -> bool:
    if not body.adopt:
        return False
    if body.kind is not WorkflowKind.DEPLOY or len(components) != 1 or body.rollback_to:
        raise InvalidInput("an adoption is a deploy of exactly one component")
    refuse_outside_cluster(tx, org, install, components[0], "adopted by another cluster")
    return True


def _check_take_over(body: StartWork) -> bool:
    if body.take_over_release and body.kind not in _DEPLOYS:
        raise InvalidInput(f"`{body.kind}` takes no release over; a deploy does")
    return body.take_over_release


def _list_components(tx: Tx, org: OrgId, install: AppInstall) -> tuple[str, ...]:
    return tuple(list_definitions(tx, org, install.config_id, Component))
