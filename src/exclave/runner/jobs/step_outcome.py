"""Steps of a job: running one, and the outcome of its exit code."""

import signal
from collections.abc import Awaitable, Callable, Iterable

from exclave.runner.jobs.context import JobContext
from exclave.runner.jobs.shell import name_signal, to_exit_status
from exclave.runner.logs.masking import Mask, mask_json
from exclave.runner.outcomes import Stopped, WorkFailed, fail
from exclave.runner.processes.child import Command
from exclave.wire.jobs import JsonValue, OutcomeState, Reason
from exclave.wire.runner import Outcome

_NOT_FOUND = 127


async def run_steps(
    steps: Iterable[Awaitable[Outcome | None]], read_outputs: Callable[[], dict[str, JsonValue]]
) -> Outcome:
    """Run steps in order until one fails; return the outcome with the outputs so far."""
    for step in steps:
        failure = await step
        if failure is not None:
            return failure.model_copy(update={"outputs": read_outputs()})
    return Outcome(
        state=OutcomeState.SUCCEEDED,
        reason=Reason.COMPLETED,
        exit_code=0,
        outputs=read_outputs(),
    )


async def run_step(
    context: JobContext,
    name: str,
    build_command: Callable[[], Awaitable[Command]],
    store_outputs: Callable[[], None],
    *,
    limit_s: float | None = None,
) -> Outcome | None:
    """Run one step of a job; return the outcome if it failed or was stopped, else None."""
    label = f"step `{name}`"
    try:
        context.check(label)
        context.log.system(f"▸ step {name}")
        code = await context.run(await build_command(), name=label, limit_s=limit_s)
        failure = describe_exit(label, code)
        if failure is None:
            store_outputs()
    except Stopped as stopped:
        return stopped.outcome
    except WorkFailed as failed:
        return fail(failed.reason, f"{label}: {failed.message}")
    return failure


def describe_exit(label: str, code: int) -> Outcome | None:
    """Return the outcome of a command that exited with this code; None for code 0."""
    if code == 0:
        return None
    if code < 0:
        message = f"{label} was ended by {name_signal(-code)}"
        if -code == signal.SIGKILL:
            message += ": the machine may be out of memory"
        return fail(Reason.EXIT_CODE, message, to_exit_status(code))
    message = f"{label} ended with exit code {code}"
    if code == _NOT_FOUND:
        message += ": a command in it was not found on the runner"
    return fail(Reason.EXIT_CODE, f"{message}; its last output tells why", code)


def mask_outputs(mask: Mask, outputs: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return outputs with their secrets masked: the control plane stores them."""
    return {mask(key): mask_json(value, mask) for key, value in outputs.items()}
