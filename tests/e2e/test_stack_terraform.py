"""The kill switch of the customer's Stack while real Terraform applies."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from exclave.runner.processes import procfs
from tests.e2e.stack_app import WORKSPACE, Customer, open_customer, open_vendor
from tests.faults.site import Site, wait_until
from tests.support.processes import signal_marked
from tests.support.tools import need_terraform


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    need_terraform()
    with open_vendor(tmp_path_factory.mktemp("vendor")) as made:
        yield made


def list_states(customer: Customer, workflow: str) -> set[str]:
    jobs = customer.stack.get("/v1/jobs", workflow_id=workflow, limit=50)["items"]
    return {str(job["state"]) for job in jobs}


def find_blocker(customer: Customer, workflow: str) -> Any:
    steps = customer.stack.get(f"/v1/workflows/{workflow}")["steps"]
    return next((step["blocked_by"] for step in steps if step["blocked_by"]), None)


def test_the_switch_stops_an_apply_and_the_install_carries_on_later(vendor: Site) -> None:
    with open_customer(vendor, "acme") as customer:
        workflow = customer.start_work()
        execution = customer.await_midst()
        assert len(procfs.list_marked(execution)) > 2, "Terraform, its shell, and what hides"

        customer.stack.run_script(customer.script, "--disable")

        ended = customer.await_end(workflow)
        assert (ended["job"]["state"], ended["job"]["reason"]) == ("cancelled", "disabled")
        assert procfs.list_marked(execution) == []
        # The state was saved in peace, and nothing is in the way of the next apply.
        known = customer.list_known()
        assert known.keys() == {"terraform_data.first", "terraform_data.slow"}
        assert customer.get(f"/tf-states/{WORKSPACE}")["lock"] is None
        assert customer.find_lane() == "free"
        assert customer.stack.wait_for_presence("disabled")["cause"] == "disabled by the customer"
        assert [one["presence"] for one in customer.get()["runners"]] == ["disabled"]

        again = customer.start_work()
        customer.await_polls()
        assert list_states(customer, again) == {"queued"}

        (customer.folder / "gate").touch()
        customer.stack.run_script(customer.script, "--enable")

        ended = customer.await_end(again)
        assert ended["state"] == "succeeded", ended
        later = ended["job"]["executions"][-1]["id"]
        assert customer.list_made() == [(execution, "first"), (execution, "slow"), (later, "slow")]
        assert customer.list_known()["terraform_data.first"] == known["terraform_data.first"]


def test_the_switch_ends_an_apply_that_does_not_listen_and_tells_what_it_made(vendor: Site) -> None:
    with open_customer(vendor, "globex") as customer:
        workflow = customer.start_work()
        execution = customer.await_midst()
        # Stopped, Terraform reacts to nothing but a kill.
        assert signal_marked(execution, b"apply", signal.SIGSTOP) > 0

        customer.stack.run_script(customer.script, "--disable")

        ended = customer.await_end(workflow)
        assert (ended["job"]["state"], ended["job"]["reason"]) == ("lost", "disabled")
        assert procfs.list_marked(execution) == []
        # No state was saved, but a journal was: people learn what exists, and nobody guesses.
        found = customer.get("/orphans")["orphans"]
        told = {(one["address"], one["certainty"]) for one in found}
        assert told == {("terraform_data.first", "created"), ("terraform_data.slow", "unknown")}
        assert customer.find_lane() == "needs_reconcile"
        assert customer.list_made() == [(execution, "first"), (execution, "slow")]

        customer.stack.run_script(customer.script, "--enable")
        customer.stack.wait_for_presence("up")
        again = customer.start_work()
        assert wait_until(lambda: find_blocker(customer, again), "it waits")["lane"] == WORKSPACE
        assert customer.list_made() == [(execution, "first"), (execution, "slow")]
