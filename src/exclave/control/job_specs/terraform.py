"""What the control plane knows of Terraform parts: the serials of states, the results of jobs."""

from exclave.base.json_values import Json, JsonObject
from exclave.control.install_state.reported_outputs import read_count, read_table
from exclave.control.job_specs.part_results import PartResults, PlanResult
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.tf_addresses import read_name
from exclave.jobspec.terraform import name_workspace
from exclave.storage import tf_states
from exclave.storage.engine.database import Tx


def find_state_serial(tx: Tx, org: OrgId, install: str, component: str) -> int:
    """Return the serial of a part's newest state; 0 if there is none."""
    newest = tf_states.find_newest(tx, org, QueueId(install), name_workspace(component))
    return 0 if newest is None else newest.serial


def _read_plan(reported: JsonObject) -> PlanResult:
    return PlanResult(bool(reported.get("noop")), read_count(reported, "serial"))


def _read_outputs(reported: JsonObject) -> dict[str, Json]:
    table = read_table(reported, "outputs")
    return {read_name(name): value for name, value in table.items()}


TERRAFORM_RESULTS = PartResults(_read_plan, _read_outputs)
