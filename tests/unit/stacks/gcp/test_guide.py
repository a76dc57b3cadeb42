"""The commands that a customer pastes exist, with the options that they are given."""

import shlex
from dataclasses import replace

import pytest

from exclave.stacks.base import Guide, StackAddress
from exclave.stacks.gcp.stack import GcpStack
from exclave.stacks.model import AccountPin, InputModel, SecretModel, StackModel
from tests.support.aws_stacks import INSTALL
from tests.support.gcp_stacks import PROJECT, make_model

ADDRESS = StackAddress("https://runners.vendor.example", "xcv_1")
GCLOUD = {
    "auth application-default login": "",
    "services enable": "project",
    "iam service-accounts create": "project",
    "iam service-accounts disable": "project",
    "iam service-accounts list": "filter format project",
    "projects add-iam-policy-binding": "member role condition",
    "infra-manager deployments apply": "service-account local-source inputs-file project",
    "infra-manager deployments delete": "project",
    "secrets versions add": "data-file project",
    "secrets list": "filter format project",
    "secrets delete": "project",
    "compute instance-groups managed resize": "region size project",
    "compute instance-groups managed list-instances": "region format project",
    "compute instance-groups managed list": "filter format project",
}
"""Commands of the Google Cloud CLI by their words, and the options of each that are used."""


def write_guide(model: StackModel, before: StackModel | None = None) -> Guide:
    return GcpStack().write_guide(model, ADDRESS, before)


def find_step(guide: Guide, title: str) -> tuple[str, ...]:
    return next(step.commands for step in guide.steps if step.title == title)


def test_break_glass_ends_by_itself_and_on_request() -> None:
    guide = write_guide(make_model())

    (begin,) = find_step(guide, "Switch on the break-glass role Emergency")
    (end,) = find_step(guide, "End break-glass")

    assert "-var=enable_break_glass_admin=true" in shlex.split(begin)
    assert '"-var=break_glass_until=$(date -u -d ' in begin
    assert "-var=" not in end


@pytest.mark.parametrize("project", [PROJECT, ""])
def test_every_command_is_one_that_the_cloud_has(project: str) -> None:
    model = make_model(account=AccountPin("europe-west1", project))
    used = set()

    for guide in (write_guide(model), write_guide(model, replace(model, secrets=()))):
        for step in guide.steps:
            for words in map(shlex.split, step.commands):
                if words[0] == "gcloud":
                    name = next(
                        one for one in GCLOUD if words[1:][: len(one.split())] == one.split()
                    )
                    options = {word[2:] for word in words if word.startswith("--")}
                    assert options == {*GCLOUD[name].split()}, words
                    used.add(name)

    assert used == {*GCLOUD}


def test_files_are_fetched_by_the_link_and_values_are_not_overwritten() -> None:
    guide = write_guide(make_model())

    fetch = find_step(guide, "Fetch the module")
    assert "https://runners.vendor.example/v1/stacks/xcv_1/gcp.zip" in fetch[0]
    assert "infrastructure-manager.zip" in fetch[1]
    create = find_step(guide, "Apply it with Terraform")
    assert create[0] == "cp -n terraform/values.example.tfvars terraform/values.tfvars"
    assert create[-1] == "terraform -chdir=terraform apply -var-file=values.tfvars"
    without = GcpStack().write_guide(make_model(), None)
    assert all(step.title != "Fetch the module" for step in without.steps)


def test_no_command_has_the_value_of_a_secret() -> None:
    create = find_step(write_guide(make_model()), "Apply it with Terraform")

    asked = [line for line in create if "TF_VAR_" in line]
    names = ("db_password_secret", "smtp_password_secret", "install_api_key")
    assert asked == [f"read -rs TF_VAR_{name} && export TF_VAR_{name}" for name in names]


def test_an_update_asks_for_new_values_only() -> None:
    before = make_model()
    fresh = InputModel("city", required=True)
    after = replace(
        before,
        secrets=(*before.secrets, SecretModel("license")),
        inputs=(*before.inputs, fresh),
    )

    guide = write_guide(after, before)

    step = next(step for step in guide.steps if step.title == "Update the Stack")
    assert "Add `install_city` to `values.tfvars`" in step.text
    assert step.commands[0] == "read -rs TF_VAR_license_secret && export TF_VAR_license_secret"
    assert "db_password" not in " ".join(step.commands)
    nothing = find_step(write_guide(before, before), "Update the Stack")
    assert nothing == ()


def test_a_stop_without_terraform_disables_the_runner_and_each_role() -> None:
    model = make_model()

    commands = find_step(write_guide(model), "Stop everything without Terraform")

    disabled = [shlex.split(line)[4] for line in commands[:-1]]
    assert len(disabled) == 1 + len(model.roles)
    assert all(email.endswith(f"@{PROJECT}.iam.gserviceaccount.com") for email in disabled)
    assert "--size 0" in commands[-1]


def test_the_files_name_what_only_the_customer_knows() -> None:
    files = {file.name: file for file in GcpStack().render(make_model()).files}

    assert files["terraform/values.example.tfvars"].content == 'install_domain = ""\n'
    assert {file.form for file in files.values()} == {"terraform", "infrastructure-manager"}
    assert INSTALL in files["terraform/machine.tf.json"].content
