"""While real Terraform applies at two customers: a new config is synced, and one is to be removed."""

from pathlib import Path

from tests.e2e.stack_app import FILES, open_customer, open_vendor
from tests.faults.app_site import AppSite
from tests.faults.site import wait_until
from tests.support.tools import need_terraform

MORE = FILES["db/main.tf"] + 'resource "terraform_data" "new" {}\n'


def test_what_runs_goes_on_with_what_it_began_with(tmp_path: Path) -> None:
    need_terraform()
    with (
        open_vendor(tmp_path) as vendor,
        open_customer(vendor, "acme") as stays,
        open_customer(vendor, "globex") as goes,
    ):
        first, second = stays.start_work("provision"), goes.start_work("provision")
        stays.await_midst()
        goes.await_midst()

        (tmp_path / "app" / "db" / "main.tf").write_text(MORE)
        AppSite(vendor).run_cli("apps", "sync", str(tmp_path / "app"), "--wait")
        removal = goes.start_work("deprovision")
        wait_until(lambda: is_blocked(goes.stack.get(f"/v1/workflows/{removal}")), "it waits")
        for customer in (stays, goes):
            (customer.folder / "gate").touch()

        assert stays.await_end(first)["state"] == "succeeded"
        assert goes.await_end(second)["state"] == "succeeded"
        assert goes.await_end(removal)["state"] == "succeeded"
        assert stays.list_known().keys() == {"terraform_data.first", "terraform_data.slow"}
        assert (stays.get()["config_version"], stays.get()["newest_version"]) == (1, 2)
        assert goes.list_known() == {}
        assert goes.get()["state"] == "deprovisioned"

        stays.stack.post(f"/v1/installs/{stays.stack.install}/upgrade", {"deploy": True})
        wait_until(lambda: "terraform_data.new" in stays.list_known(), "the new config is there")


def is_blocked(workflow: dict[str, object]) -> bool:
    steps = workflow["steps"]
    assert isinstance(steps, list)
    return any(step["blocked_by"] for step in steps)
