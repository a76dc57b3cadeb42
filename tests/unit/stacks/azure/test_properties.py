"""Whatever names and texts an app has: templates evaluate, the document is JSON, forms agree."""

import ast
import base64
import json
import re
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from exclave.domain.stacks import RoleKind
from exclave.stacks.azure.arm.template import build_group_template
from exclave.stacks.azure.bicep import write_bicep
from exclave.stacks.azure.stack import AzureStack
from exclave.stacks.azure.terraform.module import write_files
from exclave.stacks.model import InputModel, PolicyModel, RoleModel, SecretModel, StackModel
from tests.support.azure_stacks import make_model
from tests.support.bicep import parse_bicep
from tests.support.emulated_azure.deployment import Deployment, check_template
from tests.unit.stacks.azure.test_parity import list_template, list_terraform, read_module

NASTY = st.sampled_from(
    [
        "${x}",
        "%{if}",
        "'",
        '"',
        "'''",
        "[x]",
        "[[x]",
        "[",
        "]",
        "{{.nuon}}",
        "\n",
        "\\",
        "$${",
        "\\${a}",
    ]
)
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Shrinking a model takes minutes, and what fails is named by its expression anyway."""
TEXT = st.lists(NASTY | st.text(max_size=8), max_size=4).map("".join)
NAME = st.from_regex(r"[a-z][a-z0-9_]{0,11}", fullmatch=True)


@st.composite
def models(draw: st.DrawFn) -> StackModel:
    names = draw(
        st.lists(NAME, unique_by=lambda name: name.replace("_", ""), min_size=4, max_size=7)
    )
    secrets, inputs, roles = [], [], []
    for index, name in enumerate(names):
        texts: Any = {"title": draw(TEXT), "description": draw(TEXT)}
        match index % 3:
            case 0:
                default = draw(TEXT)
                secrets.append(
                    SecretModel(name, **texts, auto_generate=draw(st.booleans()), default=default)
                )
            case 1:
                kind = draw(st.sampled_from(["string", "number", "list", "bool"]))
                default_ = draw(st.none() | TEXT)
                sensitive = draw(st.booleans())
                inputs.append(
                    InputModel(name, **texts, type=kind, default=default_, sensitive=sensitive)
                )
            case _:
                actions = PolicyModel(azure_actions=("Microsoft.Web/sites/read",))
                kind_ = draw(st.sampled_from(list(RoleKind)))
                roles.append(
                    RoleModel(name, kind_, draw(TEXT) + name, **texts, policies=(actions,))
                )
    return make_model(
        secrets=tuple(secrets), inputs=tuple(inputs), roles=tuple(roles),
        description=draw(TEXT), app=draw(TEXT), runner_url="https://" + draw(TEXT),
    )  # fmt: skip


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=UNSHRUNK
)
@given(model=models(), value=st.text(max_size=20))
def test_any_app_gives_forms_that_agree_and_data_that_stays_data(
    model: StackModel, value: str
) -> None:
    if AzureStack().check(model):
        return
    template: Any = build_group_template(model)
    check_template(template)
    declared = template["parameters"]
    texts = [n for n in declared if n.startswith("install") and declared[n]["type"] == "string"]
    deployment = Deployment(template, dict.fromkeys(texts, value))

    document = json.loads(deployment.find("StackDocument")["properties"]["value"])
    system = deployment.find("RunnerMachine")["properties"]["virtualMachineProfile"]["osProfile"]
    script = base64.b64decode(system["customData"]).decode()
    (constant,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(script).body
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == "BOOT"
    ]

    assert set(document["roles"]) == {role.name for role in model.roles}
    assert set(document["role_references"]) == {role.name for role in model.roles}
    assert constant["runner_url"] == model.runner_url.rstrip("/")
    assert list_terraform(read_module(model)) == list_template(template)
    for secret in model.secrets:
        if not secret.auto_generate:
            name = f"Secret{''.join(w[:1].upper() + w[1:] for w in secret.name.split('_'))}"
            assert deployment.find(name)["properties"]["value"] == (secret.default or " ")
    bicep = parse_bicep(write_bicep(model))
    assert list(bicep.parameters) == list(declared)


@settings(max_examples=20, deadline=None)
@given(text=TEXT)
def test_any_text_is_data_in_a_file_of_terraform(text: str) -> None:
    """Descriptions and defaults of variables are no templates for Terraform; all else is."""
    secret = SecretModel("s", text, text)
    files = write_files(make_model(app=text, secrets=(secret,), description=text))

    for subject in sorted(set(files) - {"variables.tf.json"}):
        for expression in re.findall(r"(?<!\$)\$\{([^}]*)", files[subject]):
            assert expression not in ("x", "a")
