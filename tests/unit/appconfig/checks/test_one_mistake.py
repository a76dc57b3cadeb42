"""One mistake is one finding, at the place where it was made; and no mistake hides another."""

from pathlib import Path

import pytest

from exclave.appconfig.read_app import read_app
from exclave.appconfig.rendering import render_app
from tests.unit.appconfig.directories import REPO, codes, find, make_app, read

AWS = 'runner_type = "aws"\n'
ROLE = 'type = "{0}"\nname = "{0}"\ndescription = "r"\ndisplay_name = "r"\n'
POLICY = '[[policies]]\nmanaged_policy_name = "x"\n'
HELM = 'name = "web"\ntype = "helm_chart"\nchart_name = "acme-web"\n' + REPO
VALUES = {"components/web.toml": HELM + '[[values_file]]\ncontents = "./web.yaml"\n'}
STACK = 'type = "aws-cloudformation"\nname = "s"\ndescription = "s"\nvpc_nested_template_url = "{0}"\nrunner_nested_template_url = "{0}"\n'


def found(tmp_path: Path, files: dict[str, str]) -> list[tuple[str, int, int, str]]:
    reading = read(tmp_path, files)
    return [(each.file, each.line, each.column, each.message) for each in reading.diagnostics]


def test_a_misspelt_role_type_is_neither_missing_nor_a_missing_role(tmp_path: Path) -> None:
    roles = {
        f"permissions/{name}.toml": ROLE.format(name) + POLICY
        for name in ("provisioner", "maintenance", "deprovision")
    }

    assert codes(read(tmp_path, {"runner.toml": AWS, **roles})) == {"unknown_choice"}


def test_a_policy_whose_file_is_missing_is_not_empty_as_well(tmp_path: Path) -> None:
    role = ROLE.format("custom") + '[[policies]]\nname = "p"\ncontents = "./gone.json"\n'

    assert codes(read(tmp_path, {"permissions/r.toml": role})) == {"reference_missing"}


def test_what_is_read_by_another_name_is_reported_where_it_got_that_name(tmp_path: Path) -> None:
    text = """a: {{ .nuon.components.gone.outputs.a }}
{{ with .nuon.components.gone.outputs.list }}
{{ range . }}
b: {{ .c }}
{{ end }}{{ end }}
d: {{ .nuon.components.gone.outputs.e }}
"""

    places = found(tmp_path, {**VALUES, "components/web.yaml": text})

    assert [line for _, line, _, _ in places] == [1, 2, 6]


@pytest.mark.parametrize(
    ("text", "line", "column", "hint"),
    [
        ("a\n{{ .nuon.install.id\nb\n{{ .nuon.install.name }}", 2, 1, "}}"),
        ('{{ if .nuon.install.id == "x" }}{{ end }}', 1, 24, "`eq a b`"),
        ("{{ if .nuon.install.id && true }}{{ end }}", 1, 24, "`and a b`"),
        ('{{ .nuon.install.id | eq "x }}', 1, 26, '"'),
        ("{{ .nuon.install.id | toYaml }}", 1, 23, "Only Helm has it"),
        ('{{ .nuon.install.id }}{{ template "gone" . }}', 1, 26, "define"),
    ],
)
def test_a_template_that_cannot_work_says_where_it_begins_and_what_to_write(
    text: str, line: int, column: int, hint: str, tmp_path: Path
) -> None:
    reading = read(tmp_path, {**VALUES, "components/web.yaml": text})

    (only,) = reading.diagnostics
    assert (only.code, only.line, only.column) == ("template_syntax", line, column)
    assert hint in only.hint


def test_a_part_may_be_defined_after_it_is_called(tmp_path: Path) -> None:
    text = '{{ template "a" .nuon.install.id }}{{ define "a" }}{{ . }}{{ end }}'

    assert codes(read(tmp_path, {**VALUES, "components/web.yaml": text})) == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ .install.id }}", {"template_dot"}),
        ("{{ .Nuon.install.id }}", {"template_dot"}),
        ("x {{ printf .inputs.inputs.a }}", {"template_dot"}),
        ("{{ nuon.install.id }}{{ .install.id }}", {"template_dot"}),
        ("{{ nuon.install.id }}{{ .nuon.install.id }}", {"template_syntax"}),
        ("{{ .Values.install.id }}{{ $x.inputs.y }}{{ .metadata.name }}", set()),
    ],
)
def test_a_template_that_lacks_its_root_stays_as_it_is(
    text: str, expected: set[str], tmp_path: Path
) -> None:
    assert codes(read(tmp_path, {**VALUES, "components/web.yaml": text})) == expected


def test_the_name_of_a_file_without_its_dot_is_doubtful(tmp_path: Path) -> None:
    files = {
        "components/web.toml": VALUES["components/web.toml"].replace("./", ""),
        "components/web.yaml": "a: b\n",
    }

    reading = read(tmp_path, files)

    assert (codes(reading), reading.ok) == ({"reference_doubtful"}, True)


def test_a_link_whose_target_is_gone_is_called_one(tmp_path: Path) -> None:
    app = make_app(tmp_path, VALUES)
    (app / "components" / "web.yaml").symlink_to("gone.yaml")

    (only,) = read_app(app).diagnostics

    assert only.code == "reference_missing"
    assert "a link whose target is gone" in only.hint


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("vpcid", {"unknown_path"}),
        ("private_subnet", {"unknown_path"}),
        ("private_subnets", set()),
        ("whatever", set()),
    ],
)
def test_only_a_slip_of_an_output_of_the_stack_is_reported(
    output: str, expected: set[str], tmp_path: Path
) -> None:
    text = f"a: {{{{ .nuon.install_stack.outputs.{output} }}}}\n"
    files = {"runner.toml": AWS, **VALUES, "components/web.yaml": text}

    assert codes(read(tmp_path, files)) - {"missing_role"} == expected


@pytest.mark.parametrize(
    ("address", "count"),
    [
        ("https://b.s3.us-west-2.amazonaws.com/vpc/eks/default/a.yaml", 1),
        ("https://b.s3.amazonaws.com/vpc/eks/byo-vpc/a.yaml", 1),
        ("https://b.s3.amazonaws.com/runner/asg/a.yaml", 1),
        ("https://{{ .nuon.install.id }}.example.com/a.yaml", 0),
        ("https://b.s3.amazonaws.com/a.yaml", 2),
    ],
)
def test_only_known_templates_stand_for_the_network_and_the_runner_of_a_stack(
    address: str, count: int, tmp_path: Path
) -> None:
    files = {"runner.toml": AWS, "stack.toml": STACK.format(address)}

    assert len(find(read(tmp_path, files), "unknown_template")) == count


def test_a_document_that_aws_would_refuse_is_an_error_before_a_stack_is_made(
    tmp_path: Path,
) -> None:
    role = ROLE.format("custom") + '[[policies]]\nname = "p"\ncontents = "./p.json"\n'
    files = {"permissions/r.toml": role, "permissions/p.json": '{"Statement": []}'}

    (finding,) = find(read(tmp_path / "aws", {"runner.toml": AWS, **files}), "policy_contents")
    assert "`Version`" in finding.message
    gcp = read(tmp_path / "gcp", {"runner.toml": AWS.replace("aws", "gcp"), **files})
    assert find(gcp, "policy_contents") == []


def test_a_repository_without_an_owner_is_doubtful(tmp_path: Path) -> None:
    files = {"components/web.toml": HELM.replace("acme/", "")}

    assert codes(read(tmp_path, files)) == {"doubtful_format"}


RUNBOOK = """name = "r"
[[input]]
name = "x"
default = "y"
[[steps]]
name = "one"
type = "action"
command = "echo {{ .runbook_inputs.x }} {{ .nuon.install.id }}"
[[steps]]
name = "two"
type = "action"
command = "echo {{ .runbook_outputs.one.z }}"
"""


@pytest.mark.parametrize(
    ("step", "expected"), [("one", set()), ("two", set()), ("gone", {"unknown_action"})]
)
def test_a_step_reads_the_outputs_of_steps(step: str, expected: set[str], tmp_path: Path) -> None:
    text = RUNBOOK.replace("outputs.one", f"outputs.{step}")

    reading = read(tmp_path, {"runbooks/r.toml": text})

    assert codes(reading) == expected
    assert all("there is no step" in each.message for each in reading.diagnostics)


def test_a_step_cannot_read_what_a_later_one_puts_out(tmp_path: Path) -> None:
    text = RUNBOOK.replace("{{ .runbook_inputs.x }}", "{{ .runbook_outputs.two.z }}")

    reading = read(tmp_path, {"runbooks/r.toml": text})

    assert (codes(reading), reading.ok) == ({"template_scope"}, True)


def test_a_runbook_is_rendered_with_the_defaults_of_its_inputs(tmp_path: Path) -> None:
    reading = read(tmp_path, {"runbooks/r.toml": RUNBOOK})

    rendered = {each.field: each for each in render_app(reading.app, {"install": {"id": "i"}})}

    assert rendered["steps[0].command"].value == "echo y i"
    assert rendered["steps[1].command"].value is None


def test_a_role_names_a_policy_by_its_template(tmp_path: Path) -> None:
    files = {
        "permissions/r.toml": ROLE.format("custom")
        + '[[named_policies]]\nname = "{{.nuon.install.id}}-s3"\n',
        "permissions/policies/s3.toml": 'name = "{{.nuon.install.id}}-s3"\ncontents = "{}"\n',
    }

    assert codes(read(tmp_path, files)) == set()


def test_an_unknown_input_of_an_install_is_shown_at_its_own_line(tmp_path: Path) -> None:
    text = 'name = "i"\n[[inputs]]\n[[inputs]]\ngone = "x"\n'

    assert [each[:2] for each in found(tmp_path, {"installs/i.toml": text})] == [
        ("installs/i.toml", 4)
    ]


def test_every_line_of_toml_that_is_wrong_by_itself_is_reported(tmp_path: Path) -> None:
    text = 'name = "web"\na = yes\nname = "again"\nb = [\n  no,\n]\nc = "\\d"\n'

    places = found(tmp_path, {"components/web.toml": text})

    assert [(line, column) for _, line, column, _ in places] == [(2, 5), (3, 1), (5, 3), (7, 8)]


def test_mistakes_after_one_that_reaches_beyond_its_line_are_not_guessed(tmp_path: Path) -> None:
    text = 'name = "web"\na = "open\nb = yes\nc = no\n'

    assert [line for _, line, _, _ in found(tmp_path, {"components/web.toml": text})] == [2]


def test_a_stray_file_among_the_components_is_told_to_move(tmp_path: Path) -> None:
    (only,) = read(tmp_path, {"components/Cargo.toml": '[package]\nname = "x"\n'}).diagnostics

    assert only.code == "missing_key"
    assert "Move the file elsewhere" in only.hint


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("{{ trunc 3 }}", {"template_function"}),
        ("{{ .nuon.install.id | trunc 3 4 }}", {"template_function"}),
        ('{{ (.nuon.install.id | trunc 3) | printf "%s" }}{{ now }}', set()),
    ],
)
def test_arguments_are_counted(call: str, expected: set[str], tmp_path: Path) -> None:
    reading = read(tmp_path, {**VALUES, "components/web.yaml": call + "{{ .nuon.install.id }}"})

    assert (codes(reading), reading.ok) == (expected, True)


def test_what_names_a_component_of_a_file_that_is_not_text_is_not_wrong(tmp_path: Path) -> None:
    text = "a: {{ .nuon.components.cafe.outputs.x }}\n"
    app = make_app(tmp_path, {**VALUES, "components/web.yaml": text})
    (app / "components" / "cafe.toml").write_bytes(b'name = "cafe"\n# caf\xe9\n')

    assert codes(read_app(app)) == {"file_unreadable"}


def test_a_type_that_cannot_be_deployed_says_why_and_is_still_read(tmp_path: Path) -> None:
    program = 'name = "web"\ntype = "pulumi"\nruntime = "go"\n' + REPO

    reading = read(tmp_path, {"components/web.toml": program})

    assert (codes(reading), reading.ok) == ({"unsupported_type"}, True)
    assert "terraform_module" in reading.diagnostics[0].hint


def test_crds_cannot_be_both_upgraded_and_left_out(tmp_path: Path) -> None:
    keys = 'skip_crds = true\ncrds = "upgrade"\n'

    assert codes(read(tmp_path, {"components/web.toml": keys + HELM})) == {"conflict"}
