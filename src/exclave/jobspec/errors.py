"""The problem of a step that cannot become a job."""

from typing import ClassVar

from exclave.base.errors import Kind, Problem
from exclave.domain.jobs import Reason


class NotReady(Problem):
    """A step cannot become a job; the reason is one of those that jobs end with."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "not_ready"

    def __init__(self, reason: Reason, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
