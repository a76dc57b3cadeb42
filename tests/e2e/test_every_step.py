"""With real Terraform, each step of a deployment fails once and is cancelled once; then it succeeds."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack_app import FILES, Customer, open_customer, open_vendor
from tests.faults.site import Site, wait_until
from tests.support.tools import need_terraform

MODULE = """
variable "folder" { type = string }
locals {
  hang = file("${var.folder}/${fileexists("${var.folder}/NAME-hang-plan") ? "pipe" : "gate"}")
}
resource "terraform_data" "it" {
  input = "${var.folder}${local.hang}"
  lifecycle {
    precondition {
      condition     = !fileexists("${var.folder}/NAME-fail-plan")
      error_message = "It is not to be planned."
    }
  }
  provisioner "local-exec" {
    command = <<-SH
      echo NAME >> ${self.input}/made
      ! test -e ${self.input}/NAME-fail-apply || exit 1
      while test -e ${self.input}/NAME-hang-apply; do sleep 0.1; done
    SH
  }
}
"""
APP = {
    **FILES,
    "sandbox.toml": FILES["sandbox.toml"] + '[vars]\nfolder = "{{ .nuon.inputs.inputs.folder }}"\n',
    "base/main.tf": MODULE.replace("NAME", "base"),
    "db/main.tf": MODULE.replace("NAME", "db"),
}
FAILURES = {
    "sandbox-plan": "base-fail-plan",
    "sandbox-apply": "base-fail-apply",
    "db.plan": "db-fail-plan",
    "db.apply": "db-fail-apply",
}
HANGS = {
    "runner": "", "sandbox-plan": "base-hang-plan", "sandbox-approve": "",
    "sandbox-apply": "base-hang-apply", "db.plan": "db-hang-plan", "db.approve": "",
    "db.apply": "db-hang-apply",
}  # fmt: skip


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    need_terraform()
    with open_vendor(tmp_path_factory.mktemp("vendor"), APP) as made:
        yield made


def look(customer: Customer, workflow: str) -> tuple[str, Mapping[str, Any]]:
    """Tell the state of a workflow, and its steps by name."""
    shown = customer.stack.get(f"/v1/workflows/{workflow}")
    return str(shown["state"]), {step["name"]: step for step in shown["steps"]}


def await_state(customer: Customer, workflow: str, wanted: str) -> Mapping[str, Any]:
    wait_until(lambda: look(customer, workflow)[0] == wanted, f"it has {wanted}")
    return look(customer, workflow)[1]


def count_made(customer: Customer) -> int:
    file = customer.folder / "made"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_what_failed_is_tried_again_and_the_rest_follows(vendor: Site) -> None:
    with open_customer(vendor, "fails") as customer:
        (customer.folder / "gate").touch()
        for flag in FAILURES.values():
            (customer.folder / flag).touch()
        workflow = customer.start_work()

        for name, flag in FAILURES.items():
            steps = await_state(customer, workflow, "failed")
            assert [each for each, step in steps.items() if step["state"] == "failed"] == [name]
            assert steps[name]["message"]
            later = list(steps)[list(steps).index(name) + 1 :]
            assert {steps[each]["state"] for each in later} <= {"pending"}
            (customer.folder / flag).unlink()
            customer.stack.post(f"/v1/workflows/{workflow}/steps/{name}/retry")

        steps = await_state(customer, workflow, "succeeded")
        assert {step["state"] for step in steps.values()} == {"succeeded"}
        assert customer.list_known().keys() == {"terraform_data.it"}
        assert count_made(customer) == 4, "each was made, failed, and was made anew"


def test_what_is_cancelled_ends_and_leaves_nothing_in_the_way(vendor: Site) -> None:
    with open_customer(vendor, "stops") as customer:
        (customer.folder / "gate").touch()
        os.mkfifo(customer.folder / "pipe")
        allow(customer, every=False)

        for name, flag in HANGS.items():
            cancel_at(customer, name, customer.folder / flag if flag else None)

            assert {lane["state"] for lane in customer.get()["lanes"]} <= {"free"}

        allow(customer, every=True)
        steps = await_state(customer, customer.start_work(), "succeeded")
        assert steps["db.apply"]["state"] == "succeeded"
        assert customer.list_known().keys() == {"terraform_data.it"}


def allow(customer: Customer, *, every: bool) -> None:
    path = f"/v1/installs/{customer.stack.install}/approve-all"
    assert customer.stack.client.put(path, json={"approve_all": every}).status_code == 200


def cancel_at(customer: Customer, name: str, flag: Path | None) -> None:
    """Start a deployment, cancel it while it is at a step, and wait for its end."""
    if flag is not None:
        flag.touch()
    if name == "runner":
        customer.stack.run_script(customer.script, "--stop")
    before = count_made(customer)
    workflow = customer.start_work()
    wait_until(lambda: is_at(customer, workflow, name, before), f"it is at {name}")
    customer.stack.post(f"/v1/workflows/{workflow}/cancel")
    steps = await_state(customer, workflow, "cancelled")
    assert steps[name]["state"] == "cancelled"
    if flag is not None:
        flag.unlink()
    if name == "runner":
        customer.stack.run_script(customer.script, "--start")


def is_at(customer: Customer, workflow: str, name: str, before: int) -> bool:
    """Tell whether a workflow is in the midst of a step; gates on the way there are approved."""
    steps = look(customer, workflow)[1]
    for each, step in steps.items():
        if step["kind"] == "gate" and step["state"] == "active" and each != name:
            path = f"/v1/workflows/{workflow}/steps/{each}/approve"
            customer.stack.post(path, {"digest": step["digest"]})
    step = steps[name]
    match step["kind"], name:
        case "gate", _:
            return bool(step["state"] == "active")
        case _, "runner":
            return bool(step["job_state"] == "queued")
        case _:
            begun = name.endswith("plan") or count_made(customer) > before
            return begun and step["job_state"] == "running"
