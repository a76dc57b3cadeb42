"""How the results of jobs that plan or deploy a part are read."""

from collections.abc import Callable
from dataclasses import dataclass

from exclave.base.json_values import Json, JsonObject
from exclave.control.install_state.reported_outputs import OutputsInvalid, read_count, read_table
from exclave.domain.drift_findings import MOST_FINDINGS, ReportedFinding, ScanReport
from exclave.domain.resource_addresses import read_resource_address
from exclave.domain.tf_addresses import read_name


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What a plan says about its part."""

    noop: bool
    """Whether an apply would change nothing."""
    serial: int
    """The version of the deployed state that the plan was made for."""


@dataclass(frozen=True, slots=True)
class PartResults:
    """How the outputs of one kind of jobs are read; they refuse what no such job reports."""

    read_plan: Callable[[JsonObject], PlanResult]
    """Reads what a plan reports."""
    read_outputs: Callable[[JsonObject], dict[str, Json]]
    """Reads the part's outputs, which templates can use, from what an apply reports."""


_LONGEST = 1000
_CHANGES = frozenset({"create", "update", "replace", "delete", "import", "move", "forget"})


def read_report(reported: JsonObject) -> ScanReport | None:
    """Read what a scan found; None if the runner is older and does not say."""
    if reported.get("drift") is None:
        return None
    table = read_table(reported, "drift")
    entries = table.get("findings")
    listed = entries if isinstance(entries, list) else []
    findings = [_read_finding(entry) for entry in listed[:MOST_FINDINGS]]
    is_complete = len(listed) <= MOST_FINDINGS and read_count(table, "more") == 0
    return ScanReport(findings, is_complete)


def _read_finding(entry: Json) -> ReportedFinding:
    if not isinstance(entry, dict):
        raise OutputsInvalid("an entry of the output `drift` is not a table")
    texts = {
        name: str(entry.get(name, ""))[:_LONGEST].replace("\0", "")
        for name in ReportedFinding._fields
    }
    if texts["change"] not in _CHANGES:
        raise OutputsInvalid("an entry of the output `drift` has a change that is not known")
    return ReportedFinding(**{**texts, "address": _read_address(texts["address"])})


def _read_address(text: str) -> str:
    """Return the address of a resource, or of an output of Terraform."""
    kind, _, name = text.partition(".")
    return f"output.{read_name(name)}" if kind == "output" else read_resource_address(text)


def _read_plan(reported: JsonObject) -> PlanResult:
    return PlanResult(bool(reported.get("noop")), read_count(reported, "serial"))


def _read_outputs(reported: JsonObject) -> dict[str, Json]:
    table = read_table(reported, "outputs")
    return {read_name(name): value for name, value in table.items()}


def _refuse_plan(_: JsonObject) -> PlanResult:
    raise OutputsInvalid("a copy has no plan")


def _read_image(reported: JsonObject) -> dict[str, Json]:
    return {"image": read_table(reported, "image")}


PLANNED_RESULTS = PartResults(_read_plan, _read_outputs)
"""Of Terraform, charts and manifests alike."""
COPIED_RESULTS = PartResults(_refuse_plan, _read_image)
"""Of images."""
