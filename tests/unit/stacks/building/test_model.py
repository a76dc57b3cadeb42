"""A model is built from an app the same way everywhere, and says all that is wrong with it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.appconfig.diagnostics.codes import Severity
from exclave.appconfig.model.kinds.inputs import Input
from exclave.appconfig.model.kinds.runner import Runner
from exclave.appconfig.model.kinds.secrets import Secret
from exclave.appconfig.model.kinds.stack import Stack
from exclave.stacks.building.model import build_model
from exclave.stacks.building.parts import (
    StackParts,
    collect_parts,
    find_wanted_outputs,
    limit_state,
)
from exclave.stacks.digest import digest_model
from exclave.stacks.model import InputModel, SecretModel
from tests.unit.stacks.models_kit import (
    APPS,
    FACTS,
    INSTALL,
    build_app,
    build_parts,
    make_render,
    show_findings,
)


def build_stack(cloud: str = "aws", **stack: Any) -> Any:
    return build_parts(StackParts(cloud=cloud, stack=Stack(**stack)))


def test_the_sample_app_for_aws_becomes_a_model() -> None:
    built = build_app(APPS / "acme-aws")
    model = built.model

    assert model.stack_name == f"acme-{INSTALL.replace('_', '-')}"
    assert model.description == "Acme for acme"
    assert [(role.key, role.kind, role.enabled) for role in model.roles] == [
        ("provision", "provision", True),
        ("maintenance", "maintenance", True),
        ("deprovision", "deprovision", True),
        ("support", "custom", True),
        ("emergency", "break_glass", False),
    ]
    assert [secret.name for secret in model.secrets] == ["db_password", "api_key", "optional_key"]
    assert model.instance_type == "t3a.medium"
    assert {str(item.code) for item in built.findings} == {"empty_policy", "not_applied"}
    assert built.is_ok


@pytest.mark.parametrize("name", ["acme-azure", "acme-gcp"])
def test_the_sample_apps_for_other_clouds_have_no_errors(name: str) -> None:
    assert build_app(APPS / name).is_ok


def test_the_same_app_gives_the_same_digest_and_a_changed_one_another() -> None:
    first, again = build_app(APPS / "acme-gcp").model, build_app(APPS / "acme-gcp").model
    other = replace(first, description="Other")

    assert digest_model(first) == digest_model(again) != digest_model(other)


def test_a_name_that_clouds_refuse_is_made_fit() -> None:
    assert build_stack(name="Acme & Söhne / 1").model.stack_name == "Acme-S-hne-1"
    assert build_stack(name="1st").model.stack_name == "exclave-1st"
    assert build_stack().model.stack_name == f"exclave-{INSTALL.replace('_', '-')}"
    assert len(build_stack(name="a" * 200).model.stack_name) == 128


def test_only_inputs_of_the_customer_are_in_the_stack() -> None:
    inputs = (
        Input(name="size", user_configurable=True, display_name="Size", type="number", default="3"),
        Input(name="vendor"),
    )

    assert build_parts(StackParts("aws", inputs=inputs)).model.inputs == (
        InputModel("size", "Size", type="number", default="3"),
    )


def test_secrets_are_rendered() -> None:
    secret = Secret(name="{{.nuon.install.name}}_key", auto_generate=True, default="")

    assert build_parts(StackParts("aws", secrets=(secret,))).model.secrets == (
        SecretModel("acme_key", "acme_key", auto_generate=True),
    )


def test_a_text_for_people_that_cannot_be_rendered_yet_stays_and_is_a_warning() -> None:
    built = build_stack(description="{{ .nuon.sandbox.outputs.x }}")

    assert built.model.description == "{{ .nuon.sandbox.outputs.x }}"
    assert built.is_ok
    assert show_findings(built) == [("template_scope", "stack", "", ("description",))]


def test_keys_of_the_runner_without_effect_are_warnings() -> None:
    runner = Runner(init_script_url="https://a.example/x.sh", instance_type="m5.large")

    built = build_parts(StackParts("aws", runner=runner))

    assert built.model.instance_type == "m5.large"
    assert show_findings(built) == [("not_applied", "runner", "", ("init_script_url",))]


@pytest.mark.parametrize(
    ("secrets", "inputs", "culprit"),
    [
        (["a_b", "a.b"], [], ("secrets", "a.b")),
        ([], ["a_b", "a.b"], ("inputs", "a.b")),
        (["install_db"], ["db_secret"], ("inputs", "db_secret")),
        (["ab", "a_b"], [], ("secrets", "a_b")),
    ],
)
def test_names_that_become_one_parameter_are_refused(
    secrets: list[str], inputs: list[str], culprit: tuple[str, str]
) -> None:
    parts = StackParts(
        "aws",
        secrets=tuple(Secret(name=name) for name in secrets),
        inputs=tuple(Input(name=name, user_configurable=True) for name in inputs),
    )

    assert show_findings(build_parts(parts)) == [("duplicate_name", *culprit, ("name",))]


def test_more_parameters_than_cloudformation_takes_are_refused() -> None:
    secrets = tuple(Secret(name=f"s{number}") for number in range(171))

    assert show_findings(build_parts(StackParts("aws", secrets=secrets))) == [
        ("too_many", "stack", "", ())
    ]
    assert build_parts(StackParts("gcp", secrets=secrets)).findings == ()


def test_outputs_that_any_text_reads_are_known() -> None:
    texts = [
        "{{ .nuon.install_stack.outputs.vpc_id }}",
        "a {{ .nuon.install_stack.outputs.custom_role_arns.support | quote }}",
        "{{ if .nuon.install_stack.outputs.vpc_id }}{{ end }}",
        "{{ .nuon.install_stack.outputs",
        "no template: install_stack",
    ]

    assert find_wanted_outputs(texts) == ("custom_role_arns", "vpc_id")


def test_the_state_of_a_stack_is_what_is_known_before_it() -> None:
    state = {
        "id": "i",
        "install": {"id": "i", "name": "n", "inputs": {"a": "1"}, "sandbox": {}},
        "sandbox": {"outputs": {}},
        "cloud_account": {"aws": {"region": "eu-west-1"}},
        "components": {},
    }

    assert limit_state(state) == {
        "id": "i",
        "install": {"id": "i", "name": "n", "inputs": {"a": "1"}},
        "cloud_account": {"aws": {"region": "eu-west-1"}},
    }


TEXTS = st.text(max_size=30) | st.sampled_from(["${a}", "[x]", "'", "{{", "\n", "%{x}", '"', "a_b"])


@given(
    secrets=st.lists(st.builds(Secret, name=TEXTS, description=TEXTS), max_size=4),
    inputs=st.lists(
        st.builds(Input, name=TEXTS, description=TEXTS, user_configurable=st.just(True)), max_size=4
    ),
    name=TEXTS,
    cloud=st.sampled_from(["aws", "azure", "gcp"]),
)
def test_any_texts_make_a_model_with_a_digest(
    secrets: list[Secret], inputs: list[Input], name: str, cloud: str
) -> None:
    parts = StackParts(cloud, secrets=(*secrets,), inputs=(*inputs,), stack=Stack(name=name))

    first, second = (build_model(parts, FACTS, make_render()) for _ in range(2))

    assert first == second
    assert json.loads(f'"{digest_model(first.model)}"')
    assert all(item.severity in Severity and item.message for item in first.findings)
    if first.is_ok:
        names = [item.name.lower() for item in first.model.secrets]
        assert len(names) == len(set(names))


def test_parts_of_a_directory_are_those_of_the_app() -> None:
    from exclave.appconfig.read_app import read_app  # noqa: PLC0415 - only here

    app = read_app(APPS / "acme-aws").app
    parts = collect_parts(app)

    assert (parts.cloud, len(parts.roles), len(parts.emergencies)) == ("aws", 4, 1)
