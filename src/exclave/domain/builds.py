"""Builds: their states."""

from enum import StrEnum


class BuildState(StrEnum):
    """Where a build stands; the artifact of a collected one is gone: nothing pinned it."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    COLLECTED = "collected"


def may_be_reused(state: str) -> bool:
    """Return whether a config can pin a build in this state instead of building again."""
    return state in {BuildState.RUNNING, BuildState.SUCCEEDED}
