"""The document that the runner reads."""

import ast
import inspect
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from exclave.runner.cloud import document as reader
from exclave.stacks.aws.cloudformation.template import build_template
from exclave.stacks.boot import script
from exclave.stacks.digest import digest_model
from exclave.stacks.model import InputModel
from tests.support.aws_stacks import INSTALL, make_model


def read_document(**changes: Any) -> tuple[Any, dict[str, Any]]:
    """Return the document with references as they stand in its text, and its variables."""
    template: Any = build_template(make_model(**changes))
    value = template["Resources"]["StackDocument"]["Properties"]["SecretString"]["Fn::Sub"]
    text, variables = value if isinstance(value, list) else (value, {})
    return json.loads(text), variables


def test_the_document_says_what_the_customer_chose() -> None:
    document, _ = read_document()

    assert document["format"] == 1
    assert document["install"] == INSTALL
    assert document["digest"] == digest_model(make_model())
    assert (document["enabled"], document["mode"]) == ("${RunnerEnabled}", "${RunnerMode}")
    assert document["updates"] == "${RunnerUpdates}"
    assert (document["proxy"], document["ca_bundle"]) == ("${ProxyUrl}", "${CaBundleParameter}")
    assert document["seal"] == "${SealSecret}"


def test_every_key_of_the_document_has_a_reader() -> None:
    document, _ = read_document()
    by_runner, by_boot = (inspect.getsource(module) for module in (reader, script))

    keys = {key for key in document if f'"{key}"' not in by_runner}

    assert keys == {"ca_bundle"}
    assert f'document.get("{keys.pop()}"' in by_boot


def test_every_field_that_the_runner_reads_is_used_by_it() -> None:
    """A field that is parsed and then forgotten would be a promise to the customer."""
    folder = Path(reader.__file__).parents[2]
    used = {
        node.attr
        for room in ("runner", "main")
        for file in (folder / room).rglob("*.py")
        if file != Path(reader.__file__)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in {"document", "unknown", "used"}
    }

    assert {field.name for field in fields(reader.CloudDocument)} - used == set()


def test_roles_stand_under_the_names_that_the_app_gives_them() -> None:
    document, _ = read_document()

    name = f"{INSTALL}-break-glass-admin"
    arn = f"arn:${{AWS::Partition}}:iam::${{AWS::AccountId}}:role${{RolePath}}{name}"
    assert document["roles"][name] == "${EnableBreakGlassAdminRole}"
    assert document["outputs"]["break_glass_role_arns"] == {name: arn}
    assert document["outputs"]["provision_iam_role_arn"].endswith(f"{INSTALL}-provision")


def test_only_roles_for_emergencies_have_an_end() -> None:
    document, _ = read_document()

    assert document["role_ends"] == {f"{INSTALL}-break-glass-admin": "${BreakGlassUntil}"}


def test_what_the_customer_wrote_is_in_base64() -> None:
    document, variables = read_document(
        inputs=(InputModel("domain"), InputModel("key", sensitive=True))
    )

    variable = document["inputs_base64"]["domain"].strip("${}")
    assert variables[variable] == {"Fn::Base64": {"Ref": "InstallDomain"}}
    assert document["input_secrets"] == {"key": "${InputKeyValue}"}


def test_no_value_of_a_secret_is_in_the_document() -> None:
    template: Any = build_template(make_model())

    text = json.dumps(template["Resources"]["StackDocument"])
    secret = [name for name, body in template["Parameters"].items() if body.get("NoEcho")]
    assert secret == ["DbPasswordSecret", "SmtpPasswordSecret", "InstallApiKey"]
    assert not [name for name in secret if name in text]


def test_the_first_reference_is_a_resource_so_that_linting_ends() -> None:
    template: Any = build_template(make_model())

    text = template["Resources"]["StackDocument"]["Properties"]["SecretString"]["Fn::Sub"][0]
    first = text[text.index("${") + 2 :].split("}", 1)[0]
    assert first in template["Resources"]


def test_the_repository_exists_only_for_apps_that_read_it() -> None:
    with_it: Any = build_template(make_model())
    without: Any = build_template(make_model(wanted_outputs=("vpc_id",)))

    assert "ImageRepository" in with_it["Resources"]
    assert "ImageRepository" not in without["Resources"]
    assert "registry" in read_document()[0]["outputs"]
    assert "registry" not in read_document(wanted_outputs=())[0]["outputs"]
