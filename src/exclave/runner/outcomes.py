"""Outcomes of executions, and the exceptions that end one early."""

from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome

MESSAGE_CHARS = 4000
"""Maximum length of an outcome's message."""


class WorkFailed(Exception):  # noqa: N818 - says what happened, like `Problem`
    """The job failed. `reason` is from the closed list, `message` says how to fix it."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message

    @property
    def outcome(self) -> Outcome:
        """The outcome of an execution that ends with this failure."""
        return fail(self.reason, self.message)


class Stopped(Exception):  # noqa: N818 - no failure: the job was ended from outside
    """The job was ended by a stop request or its timeout.

    `killed` is true if a command had to be ended by SIGKILL: it had no chance to clean up.
    """

    def __init__(self, outcome: Outcome, *, killed: bool = False) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome
        self.killed = killed


def fail(reason: Reason, message: str, exit_code: int | None = None) -> Outcome:
    """Return the outcome of a job that did not succeed."""
    return Outcome(
        state=OutcomeState.FAILED,
        reason=reason,
        message=message[:MESSAGE_CHARS],
        exit_code=exit_code,
    )


def end_by_stop(reason: Reason, message: str) -> Outcome:
    """Return the outcome of a stopped job: cancelled if a person wanted it, else interrupted."""
    wanted = reason in {Reason.CANCELLED, Reason.DISABLED}
    state = OutcomeState.CANCELLED if wanted else OutcomeState.INTERRUPTED
    return Outcome(state=state, reason=reason, message=message[:MESSAGE_CHARS])
