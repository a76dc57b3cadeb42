"""Plans on the wire: readable documents of what an apply would change, made by runners."""

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, ValidationError

from exclave.domain.resource_addresses import read_resource_address
from exclave.domain.tf_addresses import read_name
from exclave.wire.model import Reply
from exclave.wire.spec_fields import check_storable

Address = Annotated[str, AfterValidator(read_resource_address)]
"""The address of a resource; an invalid one is replaced by a text that says so."""
OutputName = Annotated[str, AfterValidator(read_name)]


class PlanAttribute(Reply):
    """One attribute of a planned change; a sensitive value is never here."""

    path: str
    before: JsonValue = None
    after: JsonValue = None
    sensitive: bool = False
    unknown: bool = False
    forces_replacement: bool = False
    ignored: bool = False
    """Whether drift scans leave this change out."""


PlanAction = Literal[
    "create",
    "update",
    "replace",
    "delete",
    "read",
    "no-op",
    "import",
    "move",
    "forget",
    "keep",
    "run",
]
"""What would happen. `keep`: it is no longer wanted, but stays. `run`: a hook that is run."""


class TakenField(Reply):
    """A field of a live object that somebody else set, and that the apply takes over."""

    path: str
    manager: str
    """Who set it, such as `kubectl (scale)`."""


class PlannedResource(Reply):
    """What would happen to one resource."""

    address: Address
    type: str
    name: str
    module: str = ""
    action: PlanAction
    reason: str = ""
    previous: Address = ""
    import_id: str = ""
    attributes: list[PlanAttribute] = []
    taken_from: list[TakenField] = []
    events: list[str] = []
    """When a hook is run, such as `pre-upgrade`."""
    notes: list[str] = []
    """What a person has to know about this change, in sentences."""


class PlannedOutput(Reply):
    """What would happen to one output."""

    name: OutputName
    action: PlanAction
    before: JsonValue = None
    after: JsonValue = None
    sensitive: bool = False
    unknown: bool = False


class PlanSummary(Reply):
    """How many resources are touched, and how."""

    add: int = 0
    change: int = 0
    replace: int = 0
    destroy: int = 0
    imported: Annotated[int, Field(alias="import")] = 0
    move: int = 0
    outputs: int = 0
    keep: int = 0
    run: int = 0

    model_config = {"populate_by_name": True, "extra": "ignore", "frozen": True}


PolicyLevel = Literal["deny", "warn", "pass"]
"""What a finding does: `deny` refuses, the others are shown."""


class PolicyFinding(Reply):
    """A finding of a policy about a plan, or about one object of it."""

    name: str
    level: PolicyLevel
    message: str
    resource: Address = ""
    """The object that it is about; empty if it is about the whole."""


class PlanDocument(Reply):
    """A readable plan, redacted on the runner before it was uploaded."""

    format: Literal[1] = 1
    destroy: bool = False
    tool: str = ""
    resources: list[PlannedResource] = []
    outputs: list[PlannedOutput] = []
    drift: list[PlannedResource] = []
    summary: PlanSummary = PlanSummary()
    policies: list[PolicyFinding] = []
    notes: list[str] = []
    warnings: list[str] = []
    outside_images: list[str] = []
    """Images that no component of the app provides, as the plan names them."""


def read_plan(data: bytes) -> PlanDocument:
    """Return a plan document; `ValueError` if it is something else."""
    try:
        return PlanDocument.model_validate(check_storable(json.loads(data)))
    except (ValidationError, RecursionError) as error:
        message = "this is not a plan document"
        raise ValueError(message) from error
