"""The Terraform module: files by subject, no value of a secret, the same bytes each time."""

import json

from exclave.stacks.aws.terraform.module import write_files
from tests.support.aws_stacks import make_model
from tests.support.aws_variants import VARIANTS
from tests.unit.stacks.aws.test_parity import read_module


def test_the_files_are_named_after_what_is_in_them() -> None:
    assert list(write_files(make_model())) == [
        "main.tf.json", "variables.tf.json", "network.tf.json", "roles.tf.json",
        "secrets.tf.json", "machine.tf.json", "outputs.tf.json",
    ]  # fmt: skip
    assert "nested.tf.json" in write_files(VARIANTS["nested"])


def test_the_same_model_gives_the_same_bytes() -> None:
    assert write_files(make_model()) == write_files(make_model())


def test_a_secret_is_ephemeral_and_stored_without_passing_the_state() -> None:
    module = read_module(make_model())

    variables = module["variable"]
    secret = {name for name, body in variables.items() if body.get("sensitive")}
    assert secret == {"db_password_secret", "smtp_password_secret", "install_api_key"}
    assert all(variables[name]["ephemeral"] for name in secret)
    versions = module["resource"]["aws_secretsmanager_secret_version"]
    plain = {name for name, body in versions.items() if "secret_string" in body}
    assert plain == {"stack_document"}
    generated = set(module["ephemeral"]["aws_secretsmanager_random_password"])
    assert generated == {"secret_session_key", "seal_secret"}


def test_no_default_of_a_secret_is_asked_for_twice() -> None:
    variable = read_module(make_model())["variable"]["db_password_secret"]

    assert "default" not in variable
    assert variable["validation"][0]["condition"] == '${var.db_password_secret != ""}'


def test_a_deleted_seal_can_be_restored_and_nothing_else_stays() -> None:
    secrets = read_module(make_model())["resource"]["aws_secretsmanager_secret"]

    kept = {name: body["recovery_window_in_days"] for name, body in secrets.items()}
    assert {name for name, days in kept.items() if days} == {"seal_secret"}


def test_the_module_names_no_provider_so_that_the_caller_does() -> None:
    module = read_module(make_model())

    assert "provider" not in module
    assert module["terraform"]["required_version"] == ">= 1.11"


def test_the_switch_is_the_first_variable_a_reader_sees() -> None:
    variables = json.loads(write_files(make_model())["variables.tf.json"])["variable"]

    assert next(iter(variables)) == "runner_enabled"
    assert variables["runner_enabled"]["type"] == "bool"
