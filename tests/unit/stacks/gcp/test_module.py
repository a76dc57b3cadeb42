"""The module: one form for each program, the same bytes for the same model, no secret in it."""

import ast
import json
import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exclave.stacks.gcp.boot import write_boot_script
from exclave.stacks.gcp.module import Form, write_files
from exclave.stacks.gcp.names import SECRET_ID, write_account_id, write_secret_id
from exclave.stacks.gcp.nested import write_source
from exclave.stacks.gcp.stack import GcpStack
from exclave.stacks.model import AccountPin, InputModel, NestedModel, SecretModel, StackModel
from tests.support.aws_stacks import INSTALL
from tests.support.gcp_stacks import PROJECT, REGION, make_model

NASTY = st.sampled_from(["${x}", "%{if}", '"', "\n", "\\", "$${", "{{.nuon}}"])
TEXT = st.lists(NASTY | st.text(max_size=8), max_size=4).map("".join)


def read_module(model: StackModel, form: Form = Form.TERRAFORM) -> dict[str, Any]:
    """Return the blocks of all files by kind."""
    module: dict[str, Any] = {}
    for text in write_files(model, form).values():
        for kind, blocks in json.loads(text).items():
            for name, body in blocks.items():
                known = module.setdefault(kind, {}).setdefault(name, {})
                known |= body if isinstance(body, dict) else {"": body}
    return module


def read_constant(model: StackModel) -> dict[str, Any]:
    """Return what the boot script knows."""
    script = write_boot_script(model).replace("$${", "${").replace("%%{", "%{")
    for node in ast.parse(script).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "BOOT" and node.value:
            return dict(ast.literal_eval(node.value))
    raise AssertionError


def test_both_forms_make_the_same_but_for_values_of_secrets() -> None:
    values = "google_secret_manager_secret_version"
    own, managed = (read_module(make_model(), form) for form in Form)

    kept = own["resource"].pop(values)
    assert {*managed["resource"].pop(values)} == {"stack"}
    assert {*kept} == {"stack", "secret_db_password", "secret_smtp_password", "input_api_key"}
    assert managed["resource"] == own["resource"]
    ephemeral = {name for name, one in own["variable"].items() if one.get("ephemeral")}
    versions = {f"{name}_version" for name in ephemeral}
    assert ephemeral == {"db_password_secret", "smtp_password_secret", "install_api_key"}
    assert {*own["variable"]} - {*managed["variable"]} == ephemeral | versions
    assert "ephemeral" not in json.dumps(managed)


def test_the_boot_script_knows_its_install_and_where_to_read() -> None:
    assert read_constant(make_model()) == {
        "install": INSTALL,
        "cloud": "gcp",
        "runner_url": "https://runners.vendor.example",
        "keys": [{"kid": "k1", "public_key": "A" * 43, "signed_by": None, "signature": None}],
        "region": "${var.region}",
        "document": "${google_secret_manager_secret.stack.id}",
    }


def test_a_code_is_asked_for_only_where_the_project_is_not_known() -> None:
    unknown = make_model(account=AccountPin(REGION))

    assert read_constant(unknown)["code"] == "${var.enrolment_code}"
    assert "default" not in read_module(unknown)["variable"]["project_id"]
    assert "code" not in read_constant(make_model())
    known = read_module(make_model())["variable"]
    assert (known["project_id"]["default"], known["region"]["default"]) == (PROJECT, REGION)
    assert "enrolment_code" not in known


def test_names_fit_what_google_cloud_takes() -> None:
    model = make_model()
    for key in ("runner", "break_glass_admin", "a" * 60):
        assert re.fullmatch(r"[a-z][-a-z0-9]{4,28}[a-z0-9]", write_account_id(model, key)), key
    assert write_account_id(model, "a" * 60) != write_account_id(model, "a" * 61)
    assert len(write_secret_id(model, "s" * 400)) <= SECRET_ID


def test_a_module_of_the_vendor_is_fetched_by_git() -> None:
    expected = "git::https://github.com/acme/stacks.git//gcp/tools?ref=v1"

    assert write_source("acme/stacks//gcp/tools?ref=v1") == expected
    assert write_source("https://github.com/acme/stacks.git//gcp/tools?ref=v1") == expected
    nested = NestedModel("net-tools", 0, "acme/stacks//gcp/tools?ref=v1", parameters={"a": "${b}"})
    module = read_module(make_model(nested=(nested,)))
    called = module["module"]["nested_net_tools"]
    assert (called["source"], called["a"]) == (expected, "$${b}")
    outputs = module["locals"]["document"]["nested_outputs_base64"]
    assert outputs["net-tools"].startswith("${{for key, value in module.nested_net_tools :")


def test_what_the_customer_fills_in_is_listed_with_what_is_required() -> None:
    parameters = {item.name: item for item in GcpStack().list_parameters(make_model())}

    password = parameters["db_password_secret"]
    assert (password.required, password.sensitive, password.default) == (True, True, None)
    assert parameters["install_domain"].required
    assert parameters["install_nodes"].default == "3"
    assert not parameters["smtp_password_secret"].required
    assert "session_key_secret" not in parameters, "the runner makes it"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXT, name=TEXT)
def test_any_text_of_an_app_is_data(text: str, name: str) -> None:
    """Only descriptions and defaults of variables are no templates of Terraform."""
    (provision, *_) = make_model().roles
    role = type(provision)(
        "custom", provision.kind, f"{name}x", text, description=text, policies=provision.policies
    )
    secret, item = SecretModel("s", text, text), InputModel("i", text, text, default=text)
    model = make_model(
        app=text, roles=(role,), secrets=(secret,), inputs=(item,), description=text,
        runner_url=f"https://{text}",
    )  # fmt: skip

    files = write_files(model)

    for subject in sorted({*files} - {"variables.tf.json"}):
        for expression in re.findall(r"(?<!\$)\$\{([^}]*)", files[subject]):
            assert not expression.startswith("x"), expression
        assert not re.search(r"(?<!%)%\{", files[subject])
    assert read_constant(model)["runner_url"] == f"https://{text}".rstrip("/")
    variable = json.loads(files["variables.tf.json"])["variable"]["install_i"]
    assert variable["default"] == text
