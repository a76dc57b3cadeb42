"""Terraform states: why a version or a lock is refused."""

from typing import ClassVar

from exclave.base.errors import Kind, Problem


class LockHeld(Problem):
    """Another execution that still runs holds the lock of the workspace."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "lock_held"
    hint: ClassVar = "Wait until it has ended; the lock of an ended execution is free by itself."


class StateRefused(Problem):
    """A state version that would not follow on the newest one; nothing was stored."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "state_refused"
    hint: ClassVar = "Plan again: the state has changed, or belongs to another workspace."
