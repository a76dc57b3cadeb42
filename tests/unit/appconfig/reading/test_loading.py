import os
from pathlib import Path

import pytest

from exclave.appconfig.model.kinds.container_image import ContainerImage
from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.model.kinds.runner import Runner
from exclave.appconfig.read_app import read_app
from exclave.appconfig.reading.directory import Limits
from exclave.base.errors import InvalidInput
from tests.unit.appconfig.directories import APPS, REPO, WHOLE, codes, find, make_app, read
from tests.unit.appconfig.large import write_large_app

HELM = 'name = "web"\ntype = "helm_chart"\nchart_name = "acme-web"\n' + REPO
FILE = '\n[[values_file]]\ncontents = "./v.yaml"\n'
ROLE = (
    'type = "custom"\nname = "r"\ndescription = "r"\ndisplay_name = "r"\n[[policies]]\nname = "p"\n'
)
OPA = 'type = "sandbox"\nengine = "opa"\n'
RUNBOOK = (
    'name = "r"\nreadme = "./runbooks/v.yaml"\n'
    '[[steps]]\nname = "s"\ntype = "sandbox_reprovision"\n'
)
REGO = "package nuon\n\ndeny contains 1 if true\n"


@pytest.mark.parametrize("name", WHOLE)
def test_the_fixture_apps_have_no_errors(name: str) -> None:
    reading = read_app(APPS / name)

    assert reading.ok
    assert reading.app.name == name


def test_a_directory_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no directory"):
        read_app(tmp_path / "gone")


def test_folders_are_read_at_any_depth_in_the_order_of_paths(tmp_path: Path) -> None:
    files = {
        "components/z.toml": HELM.replace("web", "zzzzz"),
        "components/b/.hidden/deep.toml": HELM.replace("web", "deepp"),
        "components/b/x.TOML": "not = read",
        "components/b/notes.md": "not read",
    }

    reading = read(tmp_path, files)

    assert [each.name for each in reading.app.components] == ["api", "deepp", "database", "zzzzz"]
    assert codes(reading) == set()


def test_a_file_of_no_bytes_does_not_exist(tmp_path: Path) -> None:
    reading = read(tmp_path, {"inputs.toml": "", "inputs/x.toml": "", "metadata.toml": ""})

    assert codes(reading) == {"file_missing", "unknown_input"}


def test_a_file_of_comments_counts_as_a_form(tmp_path: Path) -> None:
    secret = 'name = "t"\ndisplay_name = "t"\ndescription = "t"\n'

    reading = read(tmp_path, {"secrets.toml": "# none\n", "secrets/t.toml": secret})

    assert codes(reading) == {"both_forms"}


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    app = make_app(tmp_path, {"components/web.toml": HELM + FILE})
    os.mkfifo(app / "components" / "v.yaml")

    assert codes(read_app(app)) == {"file_unreadable"}


@pytest.mark.parametrize(
    ("file", "text", "holder"),
    [
        ("components/deep/web.toml", HELM + FILE, "components/v.yaml"),
        ("components/deep/web.toml", HELM + FILE, "components/deep/v.yaml"),
        ("components/deep/web.toml", HELM + FILE, "v.yaml"),
        ("permissions/a/r.toml", ROLE + 'contents = "./v.yaml"\n', "permissions/v.yaml"),
        ("policies/a/p.toml", OPA + 'contents = "./v.yaml"\n', "policies/a/v.yaml"),
        ("policies.toml", "[[policy]]\n" + OPA + 'contents = "./policies/v.yaml"\n', "policies/v.yaml"),
        ("runbooks/r.toml", RUNBOOK, "runbooks/v.yaml"),
        ("metadata.toml", 'version = "v2"\nreadme = "./docs/v.yaml"\n', "docs/v.yaml"),
    ],
)  # fmt: skip
def test_references_start_from_the_folder_of_their_kind(
    tmp_path: Path, file: str, text: str, holder: str
) -> None:
    content = REGO if "polic" in holder else "{}"

    reading = read(tmp_path, {file: text, holder: content})

    assert codes(reading) <= {"missing_role"}
    found = [each.content for entry in reading.app.entries for each in entry.texts if each.file]
    assert found == [content]


def test_the_folder_of_the_kind_wins_over_the_folder_of_the_file(tmp_path: Path) -> None:
    files = {
        "components/deep/web.toml": HELM + FILE,
        "components/v.yaml": "right",
        "components/deep/v.yaml": "wrong",
    }

    web = read(tmp_path, files).app.list(HelmChart)[-1]

    assert web.values_file[0].contents == "right"


@pytest.mark.parametrize("text", ["./nuon.yaml", "plain text", "filed: 1", "x/../y"])
def test_other_texts_are_kept_as_they_are(tmp_path: Path, text: str) -> None:
    files = {"components/web.toml": HELM + f'[[values_file]]\ncontents = "{text}"\n'}

    reading = read(tmp_path, files)

    assert reading.app.list(HelmChart)[-1].values_file[0].contents == text
    assert reading.ok


@pytest.mark.parametrize(
    "text", ["../../secret", "./../../secret", "file:///etc/passwd", "../components/../../secret"]
)
def test_a_reference_never_leaves_the_directory(tmp_path: Path, text: str) -> None:
    (tmp_path / "secret").write_text("secret")
    files = {"components/web.toml": HELM + f'[[values_file]]\ncontents = "{text}"\n'}

    reading = read(tmp_path, files)

    assert codes(reading) == {"reference_outside"}


def test_a_reference_by_its_absolute_path_is_found_inside(tmp_path: Path) -> None:
    text = f"file://{tmp_path}/acme/v.yaml"
    files = {
        "components/web.toml": HELM + f'[[values_file]]\ncontents = "{text}"\n',
        "v.yaml": "a: 1",
    }

    assert read(tmp_path, files).app.list(HelmChart)[-1].values_file[0].contents == "a: 1"


def test_source_merges_another_file_over_the_table(tmp_path: Path) -> None:
    files = {
        "runner.toml": 'runner_type = "aws"\ninstance_type = "small"\nsource = "more/runner.toml"\n',
        "more/runner.toml": 'runner_type = "local"\nunknown = 1\n',
    }

    reading = read(tmp_path, files)

    assert reading.app.runner == Runner(
        runner_type="local", instance_type="small", source="more/runner.toml"
    )
    assert [(each.file, each.line) for each in reading.diagnostics] == [("more/runner.toml", 2)]


@pytest.mark.parametrize(
    ("path", "code"), [("../x.toml", "reference_outside"), ("x.toml", "reference_missing")]
)
def test_a_source_must_exist_inside_the_directory(tmp_path: Path, path: str, code: str) -> None:
    reading = read(tmp_path, {"runner.toml": f'runner_type = "local"\nsource = "{path}"\n'})

    assert codes(reading) == {code}


def test_inputs_come_from_all_sources_in_order() -> None:
    inputs = read_app(APPS / "acme-aws").app.inputs

    assert [each.name for each in inputs] == ["domain", "replicas", "debug", "license"]


def test_named_policies_are_not_roles() -> None:
    app = read_app(APPS / "acme-gcp").app

    assert [each.name for each in app.named_policies] == ["shared"]
    assert len(app.roles) == 4


def test_policies_without_a_name_are_called_like_their_file() -> None:
    assert [each.name for each in read_app(APPS / "acme-azure").app.policies] == ["images"]
    assert [each.name for each in read_app(APPS / "acme-aws").app.policies] == [
        "labels",
        "no_public_buckets",
    ]


def test_roles_of_one_file_know_their_type() -> None:
    app = read_app(APPS / "acme-aws").app

    assert [each.type for each in app.roles] == [
        "provision",
        "maintenance",
        "deprovision",
        "custom",
    ]
    assert [each.type for each in app.break_glass_roles] == [""]


def test_a_file_that_cannot_be_parsed_keeps_its_name_for_others(tmp_path: Path) -> None:
    files = {"components/database.toml": 'name = "database"\ntype = terraform_module\n'}

    reading = read(tmp_path, files)

    assert codes(reading) == {"toml_syntax"}


def test_a_stray_toml_below_components_is_explained(tmp_path: Path) -> None:
    reading = read(tmp_path, {"components/tool/Cargo.toml": "[package]\nversion = 1\n"})

    assert [each.file for each in find(reading, "missing_key")] == ["components/tool/Cargo.toml"]
    assert "every .toml file below components/" in reading.diagnostics[0].message


def test_all_files_together_have_a_limit(tmp_path: Path) -> None:
    reading = read(tmp_path, {}, limits=Limits(total_bytes=300))

    assert "file_too_large" in codes(reading)


def test_windows_line_ends_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    app = make_app(tmp_path, {})
    (app / "metadata.toml").write_bytes(b'\xef\xbb\xbfversion = "v2"\r\nunknown = 1\r\n')

    reading = read_app(app)

    assert [(each.code, each.line) for each in reading.diagnostics] == [("unknown_key", 2)]


def test_bytes_that_are_not_text_are_reported(tmp_path: Path) -> None:
    app = make_app(tmp_path, {})
    (app / "metadata.toml").write_bytes(b'version = "v2\xff"\n')

    assert "not UTF-8" in find(read_app(app), "file_unreadable")[0].message


def test_every_image_source_is_typed() -> None:
    images = [image for name in WHOLE for image in read_app(APPS / name).app.list(ContainerImage)]

    assert all(
        sum(each is not None for each in (i.public, i.aws_ecr, i.gcp_gar, i.azure_acr)) == 1
        for i in images
    )


def test_a_large_app_has_no_findings(tmp_path: Path) -> None:
    reading = read_app(write_large_app(tmp_path / "large"))

    assert (len(reading.graph.needs), codes(reading)) == (60, set())
