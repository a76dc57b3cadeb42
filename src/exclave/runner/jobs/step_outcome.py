"""What the end of a command means for its job, for all kinds of jobs that run commands."""

import signal
from dataclasses import dataclass

from exclave.runner.jobs.executor import Stop, end_by_stop, fail
from exclave.runner.jobs.shell import Cause, Ended
from exclave.runner.logs.spool import LogWriter
from exclave.runner.terraform.plan_document import mask_number
from exclave.wire.jobs import JsonValue, Reason
from exclave.wire.runner import Outcome

_NOT_FOUND = 127
_SIGNAL_BASE = 128


@dataclass(frozen=True, slots=True)
class Limits:
    """A step and how long it may take: by itself, and as a part of its job."""

    step: str
    step_s: float | None
    job_s: float


def judge(limits: Limits, stop: Stop, ended: Ended, timeout_s: float) -> Outcome | None:
    """Tell how a step failed; None if it did not."""
    if ended.code is None:
        message = f"step `{limits.step}` does not die: look at the runner's machine"
        return end_by_stop(Reason.RUNNER_ERROR, message)
    match ended.cause:
        case Cause.STOP:
            reason = stop.reason or Reason.CANCELLED
            return end_by_stop(reason, f"stopped in step `{limits.step}`: {reason}")
        case Cause.TIMEOUT:
            return tell_timeout(limits, timeout_s)
        case Cause.EXIT:
            return _judge_exit(limits.step, ended.code)


def tell_timeout(limits: Limits, timeout_s: float) -> Outcome:
    """Tell which limit ended a step."""
    own = limits.step_s is not None and limits.step_s <= timeout_s
    which = (
        f"the step's timeout of {limits.step_s:g} s"
        if own
        else f"the job's timeout of {limits.job_s:g} s"
    )
    message = (
        f"step `{limits.step}` was stopped by {which}: raise the timeout, or find out in the log"
        " what it waited for"
    )
    return fail(Reason.TIMEOUT, message)


def mask_outputs(log: LogWriter, outputs: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Mask the texts among outputs: they are stored by the control plane."""
    return {log.mask(key): _mask(log, value) for key, value in outputs.items()}


def _judge_exit(step: str, code: int) -> Outcome | None:
    if code == 0:
        return None
    if code < 0:
        message = f"step `{step}` was ended by {_name_signal(-code)}"
        if -code == signal.SIGKILL:
            message += ": the machine may be out of memory"
        return fail(Reason.EXIT_CODE, message, _SIGNAL_BASE - code)
    message = f"step `{step}` ended with exit code {code}"
    if code == _NOT_FOUND:
        message += ": a command in it was not found on the runner"
    return fail(Reason.EXIT_CODE, f"{message}; its last output tells why", code)


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _mask(log: LogWriter, value: JsonValue) -> JsonValue:
    match value:
        case str():
            return log.mask(value)
        case dict():
            return mask_outputs(log, value)
        case list():
            return [_mask(log, part) for part in value]
        case bool() | None:
            return value
        case _:
            return mask_number(value, log.mask)
