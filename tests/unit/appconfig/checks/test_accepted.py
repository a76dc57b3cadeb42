"""What the format accepts, however odd: none of it may be an error."""

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from exclave.appconfig.model.kinds.secrets import Secret
from exclave.appconfig.read_app import read_app
from exclave.appconfig.rendering import render_app
from tests.unit.appconfig.directories import APPS, REPO, codes, find, make_app, read

ACTION = 'name = "a"\ntimeout = "5m"\n[[triggers]]\ntype = "{}"\n[[steps]]\nname = "s"\ninline_contents = "{}"\n'
SCRIPT = "#!/bin/sh\\n"
SECRET = 'name = "a"\ndisplay_name = "a"\ndescription = "a"\n'
GROUP = '[[group]]\nname = "g"\ndescription = "g"\n'
INPUT = '[[input]]\nname = "domain"\ngroup = "g"\ndisplay_name = "d"\ndescription = "d"\n'
KYVERNO = '[[policy]]\ntype = "kubernetes_cluster"\ncontents = "./p.yaml"\n'
ROLE = '[[role]]\ntype = "break_glass"\nname = "b"\ndescription = "b"\ndisplay_name = "b"\n[[role.policies]]\nmanaged_policy_name = "x"\n'
GCP = 'type = "custom"\nname = "g"\ndescription = "g"\ndisplay_name = "g"\n[[policies]]\nname = "p"\ngcp_permissions = ["a.b.c"]\ngcp_predefined_role = "roles/viewer"\n'
IMAGE = 'name = "image"\ntype = "container_image"\n[public]\nimage_url = "{}"\n'
NESTED = 'name = "s"\ndescription = "s"\n[[custom_nested_stacks]]\nname = "a"\nindex = 0\ntemplate_url = "{}"\n'

CASES: list[tuple[dict[str, str], set[str]]] = [
    ({"nuon.toml": "x = 1\n"}, {"legacy_form"}),
    ({"nuon.acme.toml": "x = 1\n"}, {"legacy_form"}),
    ({"secrets.toml": "", "secrets/a.toml": SECRET}, set()),
    ({"secrets.toml": "# none\n", "secrets/a.toml": SECRET}, {"both_forms"}),
    ({"secrets.toml": f"[[secret]]\n{SECRET}", "secrets/a.toml": "# none\n"}, {"both_forms", "file_empty"}),
    ({"policies.toml": KYVERNO, "policies/p.yaml": "a: b\n"}, set()),
    ({"policies.toml": KYVERNO.replace("./", "./policies/"), "policies/p.yaml": "a: b\n"}, set()),
    ({"actions/a.toml": ACTION.format("manual", "./my script.sh"), "actions/my script.sh": "#!/bin/sh\n"}, set()),
    ({"actions/a.toml": ACTION.format("manual", "../scripts/x.sh"), "scripts/x.sh": "#!/bin/sh\n"}, set()),
    ({"actions/a.toml": ACTION.format("manual", "../../shared/x.sh"), "../shared/x.sh": "#!/bin/sh\n"}, {"reference_outside"}),
    ({"actions/a.toml": ACTION.format("pre-component-deploy", SCRIPT).replace("[[steps]]", 'component_name = "api"\n[[steps]]')}, {"deprecated"}),
    ({"actions/a.toml": ACTION.format("post-enable-component", SCRIPT)}, {"wanted_key"}),
    ({"actions/a.toml": ACTION.format('cron"\ncron_schedule = "CRON_TZ=Europe/Berlin 0 6 * * 1-5', SCRIPT)}, set()),
    ({"actions/a.toml": ACTION.format("manual", SCRIPT + "{{ .nuon.components.populated }}")}, {"unknown_path"}),
    ({"actions/a.toml": ACTION.format("manual", SCRIPT + "{{ .nuon.install.secrets.x }}{{ .action.inputs.y }}")}, {"unknown_path"}),
    ({"actions/a.toml": ACTION.format("manual", SCRIPT + "curl api.nuon.co; kubectl get pod -o go-template='{{range .items}}{{.metadata.name}}{{end}}'")}, {"unknown_path"}),
    ({"actions/a.toml": ACTION.format("manual", SCRIPT + "docker ps --format '{{.Names | weird}}'")}, set()),
    ({"break_glass.toml": ROLE}, set()),
    ({"inputs.toml": GROUP * 2 + INPUT}, {"duplicate_name"}),
    ({"components/i.toml": IMAGE.format("docker.io/library/nginx@sha256:0123")}, set()),
    ({"components/i.toml": IMAGE.format("localhost:5000/nginx:1.29")}, set()),
    ({"stack.toml": NESTED.format("https://x.s3.amazonaws.com/{{ .nuon.install.id }}.yaml")}, set()),
    ({"stack.toml": NESTED.format("github.com/acme/modules//gcp/modules/net?ref=v1")}, set()),
    ({"stack.toml": NESTED.format("./net.yaml"), "net.yaml": "Url: x.nuon.example\nPassword: '{{resolve:ssm:secret}}'\n"}, set()),
    ({"permissions/r.toml": GCP}, {"one_of"}),
    ({"runbooks/r.toml": 'name = "r"\n[[input]]\nname = "New-Version"\n[[steps]]\nname = "s"\ntype = "deploy"\ncomponent_name = "api"\n'}, {"doubtful_name"}),
    ({"components/deep/er/web.toml": 'name = "web"\ntype = "helm_chart"\nchart_name = "acme-web"\n' + REPO + '[[values_file]]\ncontents = "./values/web.yaml"\n', "components/values/web.yaml": "a: {{ .nuon.install.id }}\n"}, set()),
    ({"metadata.toml": '\ufeff#:schema https://example.com/config-schema?type=metadata\r\nversion = "v2"\r\n[onboarding]\r\nenabled = true\r\n'}, set()),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), CASES)
def test_it_is_no_error(files: dict[str, str], expected: set[str], tmp_path: Path) -> None:
    reading = read(tmp_path, files)

    assert codes(reading) == expected
    assert reading.ok


def test_a_script_in_an_old_encoding_is_embedded_with_a_warning(tmp_path: Path) -> None:
    app = make_app(tmp_path, {"actions/a.toml": ACTION.format("manual", "./x.sh")})
    (app / "actions" / "x.sh").write_bytes(b"#!/bin/sh\n# caf\xe9\n")

    reading = read_app(app)

    script = next(each for each in reading.app.actions if each.name == "a").steps[0]
    assert (codes(reading), reading.ok) == ({"file_unreadable"}, True)
    assert script.inline_contents == "#!/bin/sh\n# caf\ufffd\n"


def test_without_a_repository_links_lead_two_folders_up_and_no_further(tmp_path: Path) -> None:
    app = make_app(tmp_path / "a" / "b", {})
    for folder, name in ((tmp_path / "a", "near"), (tmp_path, "far")):
        (folder / "shared").mkdir()
        text = ACTION.format("manual", SCRIPT).replace('name = "a"', f'name = "{name}"')
        (folder / "shared" / f"{name}.toml").write_text(text)
        (app / "actions" / f"{name}.toml").symlink_to(folder / "shared" / f"{name}.toml")

    reading = read_app(app)

    assert {"health", "near"} == {each.name for each in reading.app.actions}
    assert codes(reading) == {"file_outside"}


def test_a_sealed_directory_has_no_surroundings(tmp_path: Path) -> None:
    files = {"actions/a.toml": ACTION.format("manual", "../../shared/x.sh")}
    app = make_app(
        tmp_path, {**files, "../shared/x.sh": "#!/bin/sh\n", "../shared/y.toml": "x = 1"}
    )
    (app / "components" / "y.toml").symlink_to("../../shared/y.toml")

    reading = read_app(app, sealed=True)

    assert codes(reading) == {"file_outside", "reference_outside"}
    assert not reading.ok


def test_an_empty_folder_of_components_is_lost_on_the_way_and_not_missed(tmp_path: Path) -> None:
    app = make_app(tmp_path, {})
    for part in ("components", "actions"):
        shutil.rmtree(app / part)

    assert codes(read_app(app, sealed=True)) == set()
    assert codes(read_app(app)) == {"folder_missing"}


@pytest.mark.parametrize("target", ["x", "x.toml"])
def test_a_link_to_itself_is_a_finding(target: str, tmp_path: Path) -> None:
    app = make_app(tmp_path, {})
    (app / "components" / target).symlink_to(target)

    assert codes(read_app(app)) <= {"file_unreadable"}


@pytest.mark.parametrize(
    "text",
    ["[vars." + ".".join("a" * 3000) + "]\nx = 1\n", "vars.x = " + "[" * 90 + "]" * 90 + "\n"],
)
def test_tables_that_nest_without_end_are_a_finding(text: str, tmp_path: Path) -> None:
    head = 'name = "deep"\ntype = "terraform_module"\n'

    assert codes(read(tmp_path, {"components/deep.toml": head + text})) == {"toml_syntax"}


def test_the_home_folder_is_nobody_s_surroundings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "HOME", str(tmp_path))
    app = make_app(tmp_path, {"actions/a.toml": ACTION.format("manual", "../../x.sh")})
    (tmp_path / "x.sh").write_text("#!/bin/sh\n")

    assert codes(read_app(app)) == {"reference_outside"}


HABITS = APPS / "habits"
"""Apps with the habits and mistakes that real directories have, and that do no harm."""


def test_an_app_with_all_the_habits_of_aws_has_no_error() -> None:
    reading = read_app(HABITS / "odd-eks")

    assert [each for each in reading.diagnostics if each.severity == "error"] == []
    assert codes(reading) == {
        "both_forms",
        "conflict",
        "deprecated",
        "doubtful_name",
        "empty_policy",
        "file_empty",
        "file_ignored",
        "no_default_group",
        "not_applied",
        "not_rendered",
        "silent_trigger",
        "template_dot",
        "unknown_input",
        "unknown_key",
        "unknown_path",
        "unsupported_type",
    }
    assert reading.graph.needs["app"] == ("img_api", "img_web", "rds_cluster")
    assert reading.graph.needs["redis"] == ("edge_cluster",)
    assert len(reading.app.list(Secret)) == 2


def test_an_app_with_the_habits_of_gcp_has_no_error() -> None:
    reading = read_app(HABITS / "odd-gcp")

    assert reading.ok
    assert codes(reading) == {
        "cloud_mismatch",
        "doubtful_format",
        "doubtful_name",
        "no_shebang",
        "template_syntax",
        "wanted_key",
    }
    assert reading.graph.needs["function"] == ("bucket-one",)
    assert [each.type for each in reading.app.roles] == [
        "provision",
        "maintenance",
        "deprovision",
        "custom",
    ]


def test_a_readme_with_all_the_functions_of_real_ones_is_rendered() -> None:
    app = read_app(HABITS / "odd-eks").app
    state = json.loads((HABITS / "state.json").read_text())

    fields = {(each.owner, each.field): each for each in render_app(app, state)}

    unknown = {key: each.unknown for key, each in fields.items() if each.value is None}
    assert unknown == {
        ("metadata", "readme"): ".nuon.components.populated does not exist",
        ("actions.legacy", "steps[1].inline_contents"): ".nuon.install.secrets does not exist",
    }
    assert fields["runbooks.restart", "readme"].value == (HABITS / "readme.txt").read_text()


def test_a_value_that_is_tested_and_then_used_is_one_mistake(tmp_path: Path) -> None:
    text = SCRIPT + "{{ with .nuon.bad }}{{ . }}{{ end }}\\n{{ .nuon.bad }}"

    found = read(tmp_path, {"actions/a.toml": ACTION.format("manual", text)}).diagnostics

    assert [(each.code, each.line, each.column) for each in found] == [
        ("unknown_path", 7, 39),
        ("unknown_path", 7, 72),
    ]


def test_the_time_can_be_handed_in(tmp_path: Path) -> None:
    text = SCRIPT + "{{ now | date `2006` }} {{ .nuon.app.name }}"
    app = read(tmp_path, {"actions/a.toml": ACTION.format("manual", text)}).app

    done = next(
        each
        for each in render_app(app, {}, datetime(2026, 5, 1, tzinfo=UTC))
        if each.owner == "actions.a"
    )

    assert done.value == "#!/bin/sh\n2026 acme"


def test_the_templates_of_an_app_have_a_limit_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exclave.appconfig.uses.MOST_CHARACTERS", 1000)
    text = SCRIPT + "{{ .nuon.install.id }}" * 60

    reading = read(tmp_path, {"actions/a.toml": ACTION.format("manual", text)})

    assert "more than 1000 characters" in find(reading, "file_too_large")[0].message


def test_an_app_of_everything_new_has_no_error() -> None:
    reading = read_app(HABITS / "new-all")

    assert reading.ok
    assert codes(reading) == {
        "deprecated",
        "file_empty",
        "not_applied",
        "unknown_template",
        "unsupported_type",
    }
    assert reading.graph.needs["app"] == ("eks2",)
    assert reading.graph.needs["mig"] == ("app", "db_build", "eks2")
    assert reading.graph.needs["watch"] == ("eks3", "img")
    state = {"sandbox": None, "components": {"app": {"status": "active"}, "eks2": None}}
    readme = next(render_app(reading.app, state)).value
    assert readme == (
        "- app=active\n"
        '["a","b"]\nz 12\n{{ not a template }} 97 31 1000 b\na    |  3|true|"x" 0s 1m35s\n'
    )


def test_an_app_in_the_old_style_has_no_error() -> None:
    reading = read_app(HABITS / "old-includes")

    assert reading.ok
    assert codes(reading) == {"deprecated"}
    assert (reading.app.cloud, len(reading.app.inputs)) == ("aws", 2)
    assert reading.graph.needs == {"base": (), "web": ("base",)}
