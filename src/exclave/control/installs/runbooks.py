"""Use cases of runbooks: list them, run one."""

from collections.abc import Mapping

from exclave.appconfig.model.kinds.runbooks import Runbook, RunbookInput
from exclave.base.errors import InvalidInput, NotFound
from exclave.base.names import suggest
from exclave.control.audit import record
from exclave.control.definitions import list_definitions
from exclave.control.deps import Deps
from exclave.control.installs import input_validation
from exclave.control.installs.access import get_app_install
from exclave.control.installs.inputs import show_begun
from exclave.control.installs.sensitive_inputs import hide_values
from exclave.control.installs.start_workflow import Request, WorkflowKind, begin_install_workflow
from exclave.domain.four_eyes import Author
from exclave.domain.identity import InstallId, Right, User
from exclave.flow.plans.outline import RunbookStep
from exclave.storage.engine.database import Tx
from exclave.wire.actions import RunbookInputReply, RunbookReply, RunRunbook, WorkflowReply
from exclave.wire.model import Page


async def list_runbooks(deps: Deps, user: User, install: InstallId) -> Page[RunbookReply]:
    """List the runbooks of the config that an install is on."""

    def read(tx: Tx) -> Page[RunbookReply]:
        app_install = get_app_install(tx, user, install, Right.READ)
        runbooks = list_definitions(tx, user.org, app_install.config_id, Runbook)
        return Page(items=[_show(runbook) for runbook in runbooks.values()])

    return await deps.db.read(read)


async def run_runbook(
    deps: Deps, user: User, install: InstallId, body: RunRunbook
) -> WorkflowReply:
    """Check the inputs of a runbook and start a workflow that runs it."""

    def run(tx: Tx) -> WorkflowReply:
        app_install = get_app_install(tx, user, install, Right.OPERATE, lock=True)
        runbooks = list_definitions(tx, user.org, app_install.config_id, Runbook)
        if body.runbook not in runbooks:
            raise NotFound(
                f"the app has no runbook `{body.runbook}`", hint=suggest(body.runbook, runbooks)
            )
        runbook = runbooks[body.runbook]
        values = _check_inputs(runbook, body.inputs)
        secret = {
            declaration.name for declaration in runbook.input if declaration.sensitive
        } & values.keys()
        workflow = begin_install_workflow(
            tx,
            deps,
            user.org,
            Author.of(user),
            install,
            WorkflowKind.RUNBOOK_RUN,
            Request(
                runbook=runbook.name,
                runbook_inputs=hide_values(values, secret),
                runbook_steps=tuple(_read_steps(runbook)),
            ),
            labels={"runbook": runbook.name},
            sealed={name: deps.vault.seal(values[name]) for name in sorted(secret)},
        )
        record(tx, deps, user.org, user.name, "runbook_started", workflow, name=runbook.name)
        return show_begun(tx, user.org, workflow)

    return await deps.db.write(run, key=install)


def _check_inputs(runbook: Runbook, given: Mapping[str, str]) -> dict[str, str]:
    declared = {declaration.name: declaration for declaration in runbook.input}
    unknown = sorted(set(given) - set(declared))
    if unknown:
        hint = suggest(unknown[0], declared)
        raise InvalidInput(f"the runbook has no input `{unknown[0]}`", hint=hint)
    values: dict[str, str] = {}
    for declaration in runbook.input:
        value = given.get(declaration.name, declaration.default)
        if value is not None:
            values[declaration.name] = _check_value(declaration, value)
        elif declaration.required:
            raise InvalidInput(
                f"the runbook needs a value for `{declaration.name}`",
                hint=declaration.description or f"Give it: --input {declaration.name}=…",
            )
    return values


def _check_value(declared: RunbookInput, value: str) -> str:
    if input_validation.PLACEHOLDER in value:
        message = f"the input `{declared.name}` may not contain `{input_validation.PLACEHOLDER}`"
        raise InvalidInput(message)
    flaw = input_validation.find_flaw(declared.type, value)
    if flaw:
        raise InvalidInput(f"the input `{declared.name}` is {flaw}")
    return value


def _read_steps(runbook: Runbook) -> list[RunbookStep]:
    return [
        RunbookStep(
            name=step.name,
            type=_TYPES.get(step.type, step.type),
            subject=step.component_name or step.action_name,
            dependents=step.deploy_dependents or step.tear_down_dependents,
            plan_only=step.plan_only,
            skip_components=step.skip_component_deploys,
        )
        for step in runbook.steps
    ]


_TYPES = {"deploy": "component_deploy"}


def _show(runbook: Runbook) -> RunbookReply:
    return RunbookReply(
        name=runbook.name,
        description=runbook.description,
        inputs=[
            RunbookInputReply(
                name=declaration.name,
                type=declaration.type,
                description=declaration.description,
                required=declaration.required,
                default=None if declaration.sensitive else declaration.default,
                sensitive=declaration.sensitive,
            )
            for declaration in runbook.input
        ],
        steps=[
            _describe_step(step.name, step.type, step.component_name or step.action_name)
            for step in runbook.steps
        ],
    )


def _describe_step(name: str, kind: str, subject: str) -> str:
    return f"{name}: {kind.replace('_', ' ')} {subject}".rstrip()
