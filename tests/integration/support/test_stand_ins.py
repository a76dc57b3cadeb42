"""The stand-in providers: real Terraform finds out what the real ones would refuse."""

import json
from typing import Any

import pytest

from tests.support.stand_ins.module import StandInModule

SECRET = {"user_managed": {"replicas": {"location": "europe-west1"}}}
MODULE: dict[str, Any] = {
    "variable": {"password": {"type": "string", "ephemeral": True}},
    "resource": {
        "google_service_account": {"runner": {"account_id": "xc-runner", "disabled": False}},
        "google_secret_manager_secret": {
            "password": {
                "secret_id": "password",
                "replication": SECRET,
                "labels": {"owner": "${google_service_account.runner.email}"},
            }
        },
        "google_secret_manager_secret_version": {
            "password": {
                "secret": "${google_secret_manager_secret.password.id}",
                "secret_data_wo": "${var.password}",
                "secret_data_wo_version": 1,
            }
        },
        "azurerm_user_assigned_identity": {
            "runner": {
                "name": "runner",
                "location": "westeurope",
                "resource_group_name": "${google_service_account.runner.email}",
            }
        },
    },
    "data": {"azurerm_client_config": {"me": {}}},
    "output": {
        "outputs": {
            "value": {
                "secret": "${google_secret_manager_secret.password.id}",
                "tenant": "${data.azurerm_client_config.me.tenant_id}",
            }
        }
    },
}
PROVIDERS: dict[str, dict[str, Any]] = {
    "google": {"project": "acme-prod", "region": "europe-west1"},
    "azurerm": {"features": {}},
}


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> StandInModule:
    made = StandInModule(tmp_path_factory.mktemp("module"), {}, PROVIDERS)
    write(made, MODULE)
    made.configure(password="hunter2")
    made.run("init", "-input=false")
    return made


def write(module: StandInModule, body: dict[str, Any]) -> None:
    folder = module.folder / "stack"
    folder.mkdir(exist_ok=True)
    (folder / "main.tf.json").write_text(json.dumps(body))


def test_a_module_is_applied_changed_and_destroyed(module: StandInModule) -> None:
    write(module, MODULE)

    module.apply()

    account = module.read_resources()["google_service_account.runner"]
    assert account["email"] == "xc-runner@acme-prod.iam.gserviceaccount.com"
    assert json.loads(module.run("output", "-json", "outputs")) == {
        "secret": "projects/acme-prod/secrets/password",
        "tenant": "11111111-1111-4111-8111-111111111111",
    }
    # What is write-only is told to the provider and is in no state.
    written = [one["values"].get("secret_data_wo") for one in module.read_journal()]
    assert "hunter2" in written
    assert "hunter2" not in (module.folder / "terraform.tfstate").read_text()
    module.run("plan", "-detailed-exitcode", "-input=false")

    disabled = {"runner": {"account_id": "xc-runner", "disabled": True}}
    changed = {**MODULE["resource"], "google_service_account": disabled}
    write(module, {**MODULE, "resource": changed})
    module.apply()

    assert module.read_resources()["google_service_account.runner"]["disabled"] is True
    module.run("destroy", "-auto-approve", "-input=false")
    assert module.read_resources() == {}


FAULTS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("google_service_account", "runner", {"colour": "red"}, "Extraneous JSON object property"),
    ("google_service_account", "runner", {"account_id": None}, "Missing required argument"),
    ("google_service_account", "runner", {"disabled": "maybe"}, "Incorrect attribute value type"),
    ("google_service_account", "runner", {"email": "a@b"}, "Value for unconfigurable attribute"),
    (
        "google_secret_manager_secret",
        "password",
        {"replication": None},
        "Insufficient replication blocks",
    ),
    ("azurerm_user_assigned_identity", "runner", {"location": None}, "Missing required argument"),
)


def test_what_a_provider_does_not_have_is_refused(module: StandInModule) -> None:
    """One test, since every start of a provider costs a second."""
    faulty: dict[str, dict[str, Any]] = {}
    for number, (kind, name, values, _) in enumerate(FAULTS):
        body = MODULE["resource"][kind][name] | values
        told = {key: value for key, value in body.items() if value is not None}
        faulty.setdefault(kind, {name: MODULE["resource"][kind][name]})[f"fault_{number}"] = told
    write(module, {**MODULE, "resource": {**MODULE["resource"], **faulty}})

    found = json.loads(module.run("validate", "-json", expected=1))["diagnostics"]

    assert sorted(one["summary"] for one in found) == sorted(fault[-1] for fault in FAULTS)
