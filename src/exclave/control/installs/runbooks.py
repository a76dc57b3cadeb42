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
        found = get_app_install(tx, user, install, Right.READ)
        runbooks = list_definitions(tx, user.org, found.config_id, Runbook)
        return Page(items=[_show(runbook) for runbook in runbooks.values()])

    return await deps.db.read(read)


async def run_runbook(
    deps: Deps, user: User, install: InstallId, wish: RunRunbook
) -> WorkflowReply:
    """Check the inputs of a runbook and start a workflow that runs it."""

    def run(tx: Tx) -> WorkflowReply:
        found = get_app_install(tx, user, install, Right.OPERATE, lock=True)
        runbooks = list_definitions(tx, user.org, found.config_id, Runbook)
        if wish.runbook not in runbooks:
            raise NotFound(
                f"the app has no runbook `{wish.runbook}`", hint=suggest(wish.runbook, runbooks)
            )
        runbook = runbooks[wish.runbook]
        values = _check_inputs(runbook, wish.inputs)
        secret = {each.name for each in runbook.input if each.sensitive} & values.keys()
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
    declared = {each.name: each for each in runbook.input}
    unknown = sorted(set(given) - set(declared))
    if unknown:
        hint = suggest(unknown[0], declared)
        raise InvalidInput(f"the runbook has no input `{unknown[0]}`", hint=hint)
    values: dict[str, str] = {}
    for each in runbook.input:
        value = given.get(each.name, each.default)
        if value is not None:
            values[each.name] = _check_value(each, value)
        elif each.required:
            raise InvalidInput(
                f"the runbook needs a value for `{each.name}`",
                hint=each.description or f"Give it: --input {each.name}=…",
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
            name=each.name,
            type=_TYPES.get(each.type, each.type),
            subject=each.component_name or each.action_name,
            dependents=each.deploy_dependents or each.tear_down_dependents,
            plan_only=each.plan_only,
            skip_components=each.skip_component_deploys,
        )
        for each in runbook.steps
    ]


_TYPES = {"deploy": "component_deploy"}


def _show(runbook: Runbook) -> RunbookReply:
    return RunbookReply(
        name=runbook.name,
        description=runbook.description,
        inputs=[
            RunbookInputReply(
                name=each.name,
                type=each.type,
                description=each.description,
                required=each.required,
                default=None if each.sensitive else each.default,
                sensitive=each.sensitive,
            )
            for each in runbook.input
        ],
        steps=[
            _describe_step(each.name, each.type, each.component_name or each.action_name)
            for each in runbook.steps
        ],
    )


def _describe_step(name: str, kind: str, subject: str) -> str:
    return f"{name}: {kind.replace('_', ' ')} {subject}".rstrip()
