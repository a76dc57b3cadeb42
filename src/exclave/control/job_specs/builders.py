"""Build the job of a step from its intent; whatever a tenant's values break ends that step only."""

from pydantic import JsonValue, ValidationError

from exclave.base.errors import Kind, Problem
from exclave.base.logs import Log
from exclave.control.job_specs.actions import make_run, note_run, prepare_run
from exclave.control.job_specs.context import Scope
from exclave.control.job_specs.copied_parts import make_sync
from exclave.control.job_specs.operation_roles import find_role
from exclave.control.job_specs.planned_parts import make_apply, make_check, make_plan
from exclave.control.job_specs.rendering import NotRendered
from exclave.control.job_specs.secrets import make_secrets, make_secrets_removal
from exclave.domain.intents import (
    ApplyPart,
    AwaitBuilds,
    AwaitEvent,
    AwaitRunner,
    AwaitStack,
    CheckPart,
    PlanPart,
    RemoveSecrets,
    RunAction,
    ScanPart,
    StepIntent,
    SyncPart,
    SyncSecrets,
)
from exclave.domain.jobs import Reason
from exclave.jobspec.errors import NotReady
from exclave.storage.engine.database import StatementFailed
from exclave.storage.engine.types import write_json
from exclave.wire.model import Request
from exclave.wire.spec_fields import check_storable
from exclave.wire.specs import NoopSpec

log = Log("intents")

MOST_BYTES = 2 << 20
"""The largest job. An envelope is read into memory by the server, by proxies and by a runner."""
_MOST_NAMED = 3


def make_job(scope: Scope, intent: StepIntent | None) -> dict[str, JsonValue]:
    """Return the specification of a step's job; raise `NotReady` with the reason if there is none.

    Values of a tenant may break anything on the way. Only failures of the database are not about
    them: those are raised to the caller, which runs the transaction.
    """
    try:
        return _make_job(scope, intent)
    except (NotReady, NotRendered, StatementFailed):
        raise
    except ValidationError as error:
        raise _refuse(scope, _list_faults(error)) from error
    except Problem as problem:
        if problem.kind is Kind.UNAVAILABLE:
            raise
        raise _refuse(scope, problem.message, problem.advice) from problem
    except Exception as error:
        log.error(
            "job_making_failed",
            exc=error,
            org_id=scope.org,
            install_id=scope.install,
            workflow_id=scope.workflow.id,
            step=scope.step,
        )
        hint = "The log of the control plane has the details, under the id of the workflow."
        raise _refuse(scope, f"of an unexpected error ({type(error).__name__})", hint) from error


def _make_job(scope: Scope, stored: StepIntent | None) -> dict[str, JsonValue]:
    if stored is None:
        raise _refuse(scope, "this server does not know what it is for", "Upgrade the server.")
    scope.config_id = stored.values.config
    if isinstance(stored.intent, RunAction):
        prepare_run(scope, stored.intent, stored.values)
    scope.role = find_role(scope, stored)
    made = _make_spec(scope, stored)
    if scope.role is not None:
        made = made.model_copy(update={"role": scope.role})
    spec = made.model_dump(mode="json")
    try:
        check_storable(spec)
    except ValueError as error:
        raise _refuse(scope, str(error)) from error
    size = len(write_json(spec))
    if size > MOST_BYTES:
        hint = "Give large values to the job as files of its source, or shorten the inputs."
        raise _refuse(scope, f"it has {size} bytes, and {MOST_BYTES} are possible", hint)
    if isinstance(stored.intent, RunAction):
        note_run(scope, stored.intent)
    return spec


def _make_spec(scope: Scope, stored: StepIntent) -> Request:
    match stored.intent:
        case PlanPart() | ScanPart() as plan:
            return make_plan(scope, plan, stored.values)
        case ApplyPart() as apply:
            return make_apply(scope, apply)
        case SyncPart() as sync:
            return make_sync(scope, sync)
        case CheckPart() as check:
            return make_check(scope, check)
        case RunAction() as run:
            return make_run(scope, run, stored.values)
        case SyncSecrets(adopt):
            return make_secrets(scope, adopt=adopt)
        case RemoveSecrets():
            return make_secrets_removal(scope)
        case AwaitRunner():
            return NoopSpec()
        case AwaitStack() | AwaitBuilds() | AwaitEvent():
            raise _refuse(scope, "it only waits, and runs nothing")


def _refuse(scope: Scope, why: str, hint: str = "") -> NotReady:
    message = f"step `{scope.step}` cannot become a job: {why}"
    return NotReady(Reason.RENDER_FAILED, message, hint=hint or _HINT)


_HINT = "Look at the inputs and outputs that the step's templates read."


def _list_faults(error: ValidationError) -> str:
    """Return the fields and their faults, never the values: they may be secret."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    named = [f"{_name_place(fault['loc'])}: {fault['msg']}" for fault in faults[:_MOST_NAMED]]
    left = len(faults) - len(named)
    return "; ".join(named) + (f"; and {left} more" if left else "")


def _name_place(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part)[:100] for part in loc) or "the job"
