"""The module, applied by Terraform with a provider that stands in for Google Cloud."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from exclave.runner.cloud.document import CloudDocument, parse_document
from exclave.stacks.gcp.module import Form, write_files
from exclave.stacks.gcp.names import write_secret_id
from exclave.stacks.model import StackModel
from tests.support.aws_stacks import INSTALL
from tests.support.gcp_stacks import GIVEN, PROJECT, PROVIDERS, REGION, make_model
from tests.support.stand_ins.module import StandInModule

SECRET = GIVEN["db_password_secret"]
KEY = f"projects/{PROJECT}/locations/{REGION}/keyRings/r/cryptoKeys/k"
ADMIN = f"{INSTALL}-break-glass-admin"


def open_module(folder: Path, model: StackModel, form: Form = Form.TERRAFORM) -> StandInModule:
    made = StandInModule(folder, write_files(model, form), PROVIDERS)
    made.configure(**GIVEN)
    return made


def apply(module: StandInModule, **values: Any) -> CloudDocument:
    """Apply with the customer's values; return the document that the runner reads.

    Nothing is done where the last test left just that.
    """
    module.configure(**{**GIVEN, **values})
    wanted, applied = module.folder / "main.tf.json", module.folder / "applied"
    if not applied.exists() or applied.read_text() != wanted.read_text():
        module.apply()
        applied.write_text(wanted.read_text())
    document = find(module, "google_secret_manager_secret_version")["stack"]
    return parse_document(document["secret_data"])


def find(module: StandInModule, kind: str) -> Mapping[str, Any]:
    """Return the resources of a kind by their names."""
    resources = module.read_resources().items()
    return {name.partition(".")[2]: body for name, body in resources if name.startswith(f"{kind}.")}


def list_grants(module: StandInModule, account: str) -> set[str]:
    """Return the roles that an account has in the project."""
    members = find(module, "google_project_iam_member").values()
    return {one["role"] for one in members if account in one["member"]}


def list_permissions(custom: Mapping[str, Any], role: str) -> list[str]:
    """Return what a role of the project may do; one of Google's stands for itself."""
    name = role.rpartition("/")[2]
    return list(custom[name]["permissions"]) if name in custom else [name]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> StandInModule:
    made = open_module(tmp_path_factory.mktemp("module"), make_model())
    made.run("init", "-input=false")
    return made


def test_a_new_network_has_a_machine_that_only_the_document_and_roles_belong_to(
    module: StandInModule,
) -> None:
    document = apply(module)

    assert document.is_enabled
    assert (document.install, document.mode, document.updates) == (INSTALL, "full", "auto")
    accounts = find(module, "google_service_account")
    assert document.role_references == {
        f"{INSTALL}-provision": accounts["role_provision"]["email"],
        f"{INSTALL}-maintenance": accounts["role_maintenance"]["email"],
        f"{INSTALL}-deprovision": accounts["role_deprovision"]["email"],
        f"{INSTALL}-report": accounts["role_report"]["email"],
        ADMIN: accounts["role_break_glass_admin"]["email"],
    }
    assert document.roles == {**dict.fromkeys(document.role_references, True), ADMIN: False}
    assert document.inputs == {
        "domain": GIVEN["install_domain"], "nodes": "3", "zones": "a,b", "debug": "false",
    }  # fmt: skip
    assert (
        document.outputs["network_name"]
        == find(module, "google_compute_network")["network"]["name"]
    )
    assert document.outputs["custom_sa_emails"] == {"report": accounts["role_report"]["email"]}
    machine = find(module, "google_compute_region_instance_template")["runner"]
    assert machine["network_interface"][0]["access_config"] == []
    assert machine["shielded_instance_config"][0]["enable_secure_boot"] is True
    assert document.log == f"projects/{PROJECT}/logs/exclave-{INSTALL}"
    assert document.seal == f"projects/{PROJECT}/secrets/{write_secret_id(make_model(), 'seal')}"
    module.run("plan", "-detailed-exitcode", "-input=false")


def test_values_of_secrets_reach_the_cloud_and_no_state(module: StandInModule) -> None:
    document = apply(module)

    written = {
        one["values"]["secret"]: one["values"].get("secret_data_wo")
        for one in module.read_journal()
        if one["type"] == "google_secret_manager_secret_version"
    }
    assert written[document.secrets["db_password"]] == SECRET
    assert written[document.secrets["smtp_password"]] == " ", "blank means that it was not given"
    assert document.secrets["session_key"] not in written, "the runner makes it"
    assert SECRET not in (module.folder / "terraform.tfstate").read_text()


def test_the_runner_may_take_roles_and_read_secrets_and_nothing_else(
    module: StandInModule,
) -> None:
    apply(module)

    runner = find(module, "google_service_account")["runner"]["email"]
    custom = {
        one["role_id"]: one for one in find(module, "google_project_iam_custom_role").values()
    }
    own = {
        right for role in list_grants(module, runner) for right in list_permissions(custom, role)
    }
    assert own == {"logging.logEntries.create"}
    given = [
        (one["role"].rpartition("/")[2], place)
        for kind, place in (
            ("google_service_account_iam_member", "account"),
            ("google_secret_manager_secret_iam_member", "secret"),
        )
        for one in find(module, kind).values()
        if runner in one["member"]
    ]
    rights = {
        (permission, place)
        for role, place in given
        for permission in list_permissions(custom, role)
    }
    assert rights == {
        ("iam.serviceAccounts.getAccessToken", "account"),
        ("secretmanager.versions.access", "secret"),
        ("secretmanager.versions.list", "secret"),
        ("secretmanager.secretVersionAdder", "secret"),
    }


def test_the_kill_switch_stops_the_machine_and_disables_every_account(
    module: StandInModule,
) -> None:
    apply(module)
    before = find(module, "google_compute_region_instance_template")

    document = apply(module, runner_enabled=False)

    assert not document.is_enabled
    accounts = find(module, "google_service_account")
    assert {name for name, one in accounts.items() if not one["disabled"]} == {"nodes"}
    group = find(module, "google_compute_region_instance_group_manager")["runner"]
    assert group["target_size"] == 0
    after = find(module, "google_compute_region_instance_template")
    assert before == after, "the switch makes no other machine"
    document = apply(module)
    assert document.is_enabled
    on = {
        name for name, one in find(module, "google_service_account").items() if not one["disabled"]
    }
    assert "role_provision" in on
    assert "role_break_glass_admin" not in on


def test_break_glass_ends_and_plan_only_takes_all_rights_but_reading(
    module: StandInModule,
) -> None:
    until = "2999-01-01T00:00:00Z"
    document = apply(module, enable_break_glass_admin=True, break_glass_until=until)

    assert document.roles[ADMIN] is True
    account = find(module, "google_service_account")["role_break_glass_admin"]
    assert account["disabled"] is False
    members = find(module, "google_project_iam_member").values()
    bound = {one["role"]: one["condition"] for one in members if account["email"] in one["member"]}
    assert {*bound} == {"roles/compute.admin", "roles/editor"}
    assert bound["roles/compute.admin"][0]["expression"] == f'request.time < timestamp("{until}")'
    assert bound["roles/editor"] == [], "Google takes no condition for it"

    apply(module, enable_break_glass_admin=True, break_glass_until="2020-01-01T00:00:00Z")

    assert list_grants(module, account["email"]) == {"roles/compute.admin"}

    apply(module, runner_mode="plan-only")

    accounts = find(module, "google_service_account").items()
    roles = [one["email"] for name, one in accounts if name.startswith("role_")]
    assert {role for email in roles for role in list_grants(module, email)} == {"roles/viewer"}


def test_a_network_of_the_customer_is_used_and_nothing_of_it_is_made(
    module: StandInModule,
) -> None:
    network = "projects/host/global/networks/shared"
    subnet = f"projects/host/regions/{REGION}/subnetworks"

    document = apply(
        module,
        network=network,
        runner_subnetwork=f"{subnet}/runners",
        private_subnetworks=[f"{subnet}/a", f"{subnet}/b"],
    )

    assert find(module, "google_compute_network") == {}
    assert find(module, "google_compute_subnetwork") == {}
    named = {
        "network_name": "shared", "network_id": network, "private_subnet_name": "a",
        "private_subnet_names": "a,b", "public_subnet_name": "", "runner_subnet_name": "runners",
    }  # fmt: skip
    assert {name: document.outputs[name] for name in named} == named
    rules = find(module, "google_compute_firewall").values()
    assert {rule["project"] for rule in rules} == {"host"}

    module.configure(**GIVEN, network=network)
    refused = module.run("plan", "-input=false", expected=1)

    assert "needs runner_subnetwork too" in refused


def test_infrastructure_manager_gets_no_value_of_a_secret(tmp_path: Path) -> None:
    model = make_model(wanted_outputs=())
    module = open_module(tmp_path, model, Form.INFRASTRUCTURE_MANAGER)
    module.configure(install_domain=GIVEN["install_domain"], kms_key=KEY)
    module.run("init", "-input=false")

    module.apply()

    assert {*find(module, "google_secret_manager_secret_version")} == {"stack"}
    places = find(module, "google_secret_manager_secret")
    assert {"secret_db_password", "input_api_key", "seal"} <= {*places}
    (replica,) = places["seal"]["replication"][0]["user_managed"][0]["replicas"]
    assert replica["customer_managed_encryption"] == [{"kms_key_name": KEY}]
    (disk,) = find(module, "google_compute_region_instance_template")["runner"]["disk"]
    assert disk["disk_encryption_key"][0]["kms_key_self_link"] == KEY
