"""Whatever names and texts an app has: templates parse, the document is JSON, the script compiles."""

import ast
import json
import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exclave.domain.stacks import RoleKind
from exclave.stacks.aws.cloudformation.template import build_template, write_template
from exclave.stacks.aws.stack import AwsStack
from exclave.stacks.aws.terraform.module import write_files
from exclave.stacks.model import InputModel, PolicyModel, RoleModel, SecretModel, StackModel
from exclave.stacks.naming import write_snake
from tests.support.aws_stacks import make_model
from tests.support.cloudformation import Resolver
from tests.unit.stacks.aws.test_parity import list_template, list_terraform, read_module

NASTY = st.sampled_from(
    [
        "${x}",
        "${AWS::Region}",
        "%{if}",
        "'",
        '"',
        "'''",
        "[x]",
        "{{.nuon}}",
        "\n",
        "\\",
        "$${",
        "${!a}",
    ]
)
TEXT = st.lists(NASTY | st.text(max_size=8), max_size=4).map("".join)
NAME = st.from_regex(r"[a-z][a-z0-9_]{0,11}", fullmatch=True)
VALUES = st.text(max_size=20)


@st.composite
def models(draw: st.DrawFn) -> StackModel:
    names = draw(
        st.lists(NAME, unique_by=lambda name: name.replace("_", ""), min_size=4, max_size=9)
    )
    kinds = list(RoleKind)
    secrets, inputs, roles = [], [], []
    for index, name in enumerate(names):
        texts: Any = {"title": draw(TEXT), "description": draw(TEXT)}
        match index % 3:
            case 0:
                secrets.append(SecretModel(name, **texts, auto_generate=draw(st.booleans())))
            case 1:
                kind = draw(st.sampled_from(["string", "number", "list", "bool"]))
                given_default = draw(st.none() | TEXT)
                inputs.append(
                    InputModel(
                        name,
                        **texts,
                        type=kind,
                        default=given_default,
                        sensitive=draw(st.booleans()),
                    )
                )
            case _:
                document: Any = {
                    "Version": "2012-10-17",
                    "Statement": [
                        {"Effect": "Allow", "Action": draw(TEXT), "Resource": draw(TEXT)}
                    ],
                }
                policy = PolicyModel(name=draw(TEXT), document=document)
                roles.append(
                    RoleModel(
                        name,
                        draw(st.sampled_from(kinds)),
                        draw(TEXT) + name,
                        **texts,
                        policies=(policy,),
                    )
                )
    return make_model(
        secrets=tuple(secrets), inputs=tuple(inputs), roles=tuple(roles),
        description=draw(TEXT), app=draw(TEXT), runner_url="https://" + draw(TEXT),
    )  # fmt: skip


def substitute(text: str, variables: dict[str, str]) -> str:
    """Return what `Fn::Sub` makes of a text."""
    done = re.sub(r"\$\{([^!}][^}]*)\}", lambda match: variables.get(match[1], "x"), text)
    return done.replace("${!", "${")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(model=models())
def test_any_app_gives_forms_that_agree(model: StackModel) -> None:
    if AwsStack().check(model):
        return
    template: Any = json.loads(write_template(build_template(model)))
    module = read_module(model)

    assert list_terraform(module) == list_template(template)
    expected = {write_snake(name.replace("GiB", "Gib")) for name in template["Parameters"]}
    assert expected <= set(module["variable"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(model=models(), value=VALUES)
def test_any_app_gives_a_document_that_is_json_and_a_script_that_compiles(
    model: StackModel, value: str
) -> None:
    if AwsStack().check(model):
        return
    template: Any = build_template(model)
    required = [n for n, body in template["Parameters"].items() if "Default" not in body]
    inputs = [n for n in template["Parameters"] if n.startswith("Install") and n not in required]
    texts = [n for n in inputs if template["Parameters"][n]["Type"] == "String"]
    texts = [n for n in texts if "AllowedValues" not in template["Parameters"][n]]
    resolver = Resolver(template, {**dict.fromkeys(required, "1"), **dict.fromkeys(texts, value)})

    resources = resolver.resolve()["Resources"]
    text, variables = resources["StackDocument"]["Properties"]["SecretString"]["Fn::Sub"]
    names = dict.fromkeys(variables, "eA==")
    document = json.loads(substitute(text, names))

    assert set(document["roles"]) == {role.name for role in model.roles}
    launch = resources["RunnerTemplate"]["Properties"]["LaunchTemplateData"]
    script = substitute(launch["UserData"]["Fn::Base64"]["Fn::Sub"], {})
    (constant,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(script).body
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == "BOOT"
    ]
    assert constant["runner_url"] == model.runner_url.rstrip("/")


@settings(max_examples=30, deadline=None)
@given(text=TEXT)
def test_any_text_is_data_in_a_file_of_terraform(text: str) -> None:
    """Descriptions and defaults of variables are no templates for Terraform; all else is."""
    secret = SecretModel("s", text, text)
    files = write_files(make_model(app=text, secrets=(secret,), description=text))

    for subject in sorted(set(files) - {"variables.tf.json"}):
        for expression in re.findall(r"(?<!\$)\$\{([^}]*)", files[subject]):
            assert not expression.startswith(("x", "AWS", "!a"))
