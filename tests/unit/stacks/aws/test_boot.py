"""The boot script: readable, small, without secrets, the same for every version."""

import ast
from dataclasses import replace
from typing import Any

from exclave.stacks.aws.boot import build_boot_script
from exclave.stacks.aws.cloudformation.intrinsics import write_substitution
from exclave.stacks.aws.limits import USER_DATA_BYTES
from exclave.stacks.base import SigningKey
from exclave.stacks.model import AccountPin, ProgramPins, StackModel
from tests.support.aws_stacks import INSTALL, make_model


def write_script(model: StackModel) -> str:
    body: Any = write_substitution(build_boot_script(model).parts)
    return str(body["Fn::Sub"]).replace("${!", "${")


def read_constant(script: str) -> dict[str, Any]:
    for node in ast.parse(script).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "BOOT" and node.value:
            return dict(ast.literal_eval(node.value))
    raise AssertionError


def test_the_script_compiles_and_knows_its_install_and_where_to_read() -> None:
    script = write_script(make_model())

    assert script.startswith("#!/usr/bin/python3\n")
    assert read_constant(script) == {
        "install": INSTALL,
        "cloud": "aws",
        "runner_url": "https://runners.vendor.example",
        "keys": [{"kid": "k1", "public_key": "A" * 43, "signed_by": None, "signature": None}],
        "region": "${AWS::Region}",
        "domain": "${AWS::URLSuffix}",
        "document": "${StackDocument}",
    }


def test_a_code_stands_in_it_only_where_the_account_is_not_known() -> None:
    unknown = make_model(account=AccountPin("eu-west-1"))

    assert read_constant(write_script(unknown))["code"] == "${EnrolmentCode}"
    assert "code" not in read_constant(write_script(make_model()))


def test_the_script_fits_into_the_machine_with_many_keys() -> None:
    keys = tuple(SigningKey(f"k{n}", "A" * 43, "root", "B" * 86) for n in range(8))

    assert len(write_script(make_model()).encode()) < USER_DATA_BYTES / 1.5
    assert len(write_script(make_model(keys=keys)).encode()) < USER_DATA_BYTES


def test_a_new_version_role_or_input_changes_no_machine() -> None:
    model = make_model()
    later = replace(
        model, program=ProgramPins("9.9.9", "a" * 64, "b" * 64), roles=(), inputs=(), secrets=()
    )

    assert write_script(later) == write_script(model)


def test_the_customer_reads_no_comment_for_our_linters() -> None:
    script = write_script(make_model())

    assert "noqa" not in script
    assert "type: ignore" not in script


def test_an_address_cannot_leave_its_quotes() -> None:
    url = "https://x'); import os #\n${AWS::Region}\\"
    script = write_script(make_model(runner_url=url))

    assert read_constant(script)["runner_url"] == url
