"""Problems of Terraform states: refused versions and locks."""

from typing import ClassVar

from exclave.base.errors import Kind, Problem


class LockHeld(Problem):
    """Another running execution holds the lock of the workspace."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "lock_held"
    hint: ClassVar = "Wait until it has ended; the lock of an ended execution is free by itself."


class StateRefused(Problem):
    """A state version that does not succeed the latest one; nothing was stored."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "state_refused"
    hint: ClassVar = "Plan again: the state has changed, or belongs to another workspace."
