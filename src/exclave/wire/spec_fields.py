"""Fields and tables that the job specifications of several kinds share."""

import math
import re
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from exclave.base import job_limits
from exclave.wire.model import Id, Request

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Repository = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]+((\.|__?|-+|/)[a-z0-9]+)*$", max_length=200)
]
Workspace = Annotated[
    str, StringConstraints(pattern=r"^(sandbox|secrets|policies|component:[a-z0-9][a-z0-9_-]*)$")
]
"""The name of a part's state, which is also that of the lane that guards it."""
EnvName = Annotated[str, StringConstraints(pattern=f"^{job_limits.ENV_NAME}$")]
EnvValue = Annotated[str, StringConstraints(max_length=job_limits.VALUE, pattern=r"^[^\x00]*$")]
Env = Annotated[dict[EnvName, EnvValue], Field(max_length=200)]
Argument = Annotated[str, StringConstraints(max_length=job_limits.VALUE, pattern=r"^[^\x00]*$")]
TimeoutS = Annotated[float, Field(gt=0, le=6 * 3600)]


MOST_NESTED = 100
"""Maximum depth of a document. JSON parsers stop at 200, and documents are nested in others."""
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def check_storable(value: JsonValue) -> JsonValue:
    """Raise if JSON or a database cannot hold it: NUL, lone surrogates, deep nesting, infinity."""
    _check_levels(value, MOST_NESTED)
    return value


def _check_levels(value: JsonValue, levels: int) -> None:
    match value:
        case dict() | list() if not levels:
            message = f"it is nested deeper than {MOST_NESTED} levels"
            raise ValueError(message)
        case dict():
            for key, part in value.items():
                _check_levels(key, levels)
                _check_levels(part, levels - 1)
        case list():
            for part in value:
                _check_levels(part, levels - 1)
        case float() if not math.isfinite(value):
            message = "a number is too large"
            raise ValueError(message)
        case str() if "\0" in value:
            message = "text may not contain a NUL character"
            raise ValueError(message)
        case str() if _HALF_CHARACTER.search(value):
            message = "text may not contain half of a surrogate pair"
            raise ValueError(message)
        case _:
            pass


Outputs = Annotated[dict[str, JsonValue], Field(max_length=1000), AfterValidator(check_storable)]
"""The outputs of a job or an external event."""


class Artifact(Request):
    """An OCI artifact by its digest, never by a tag."""

    repository: Repository
    digest: Digest


class RegoPolicy(Request):
    """A policy that a plan must pass."""

    name: Annotated[str, StringConstraints(max_length=200)]
    rego: Annotated[str, StringConstraints(max_length=job_limits.SCRIPT)]


class PlanRef(Request):
    """The plan to apply: uploaded by an earlier execution, approved by its digest."""

    execution_id: Id
    digest: Digest
