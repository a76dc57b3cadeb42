"""Ids in paths; a malformed one is answered exactly like a missing one."""

import re
from collections.abc import Callable
from typing import Annotated

from fastapi import Path
from pydantic import BeforeValidator

from exclave.base.id_forms import ID_PATTERN
from exclave.domain.identity import InstallId, RunnerId, TokenId
from exclave.domain.jobs import ExecutionId, JobId
from exclave.domain.workflows import WorkflowId

_ID = re.compile(ID_PATTERN)
_APP = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_STEP = re.compile(r"[a-z0-9][a-z0-9._-]{0,250}")
_NOTHING = "nil_" + "0" * 26
"""An id that is never issued."""
_PATTERN = f"^{ID_PATTERN}$"


def _or_nothing(shape: re.Pattern[str], nothing: str) -> Callable[[object], object]:
    def read(value: object) -> object:
        return value if isinstance(value, str) and shape.fullmatch(value) else nothing

    return read


def read_id(value: str) -> str:
    """Return an id from a path; a malformed one becomes an id that is never issued."""
    return value if _ID.fullmatch(value) else _NOTHING


_read_id = BeforeValidator(_or_nothing(_ID, _NOTHING))
_read_app = BeforeValidator(_or_nothing(_APP, _NOTHING))
_read_name = BeforeValidator(_or_nothing(_STEP, "0"))

RegistryTokenOf = Annotated[str, Path(pattern=_PATTERN), _read_id]
TokenOf = Annotated[TokenId, Path(pattern=_PATTERN), _read_id]
AppOf = Annotated[
    str, Path(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$", description="Its id or its name."), _read_app
]
BuildOf = Annotated[str, Path(pattern=_PATTERN), _read_id]
ConfigOf = Annotated[str, Path(pattern=_PATTERN), _read_id]
InstallOf = Annotated[InstallId, Path(pattern=_PATTERN), _read_id]
RunnerIdOf = Annotated[RunnerId, Path(pattern=_PATTERN), _read_id]
WorkflowOf = Annotated[WorkflowId, Path(pattern=_PATTERN), _read_id]
JobOf = Annotated[JobId, Path(pattern=_PATTERN), _read_id]
ExecutionOf = Annotated[ExecutionId, Path(pattern=_PATTERN), _read_id]
StepOf = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,250}$"), _read_name]
WorkspaceOf = Annotated[str, Path(max_length=80)]
FindingOf = Annotated[str, Path(pattern=_PATTERN), _read_id]
LaneOf = Annotated[str, Path(max_length=80)]
