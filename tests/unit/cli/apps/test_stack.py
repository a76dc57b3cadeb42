"""`exclave apps stack`: a Stack as files, from a directory alone."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from exclave.cli.apps.stack_folder import LIST
from exclave.cli.root import LazyCommand, build_root, run
from exclave.stacks.registry import CLOUD_STACKS
from tests.support.imports import list_imported
from tests.unit.appconfig.directories import APPS, make_app

Cli = Callable[..., tuple[int, str, str]]
APPS_NOUN = {"apps": LazyCommand("exclave.cli.apps.local", "group", "App directories.")}
AWS = {"runner.toml": 'runner_type = "aws"\n'}
ROLE = """type = "provision"
name = "{{.nuon.install.id}}-provision"
description = "Role"
display_name = "Provision"
[[policies]]
name = "deploy"
contents = "./deploy.json"
"""
EVIL = "\\u001B]0;PWNED\\u0007\\u009B2J"
PAGES = {"INSTRUCTIONS.md", "PERMISSIONS.md", "permissions.json"}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*argv: str | Path) -> tuple[int, str, str]:
        code = run(build_root(APPS_NOUN), ["apps", "stack", *map(str, argv)], {})
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def list_files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_an_app_of_google_cloud_gets_a_module_in_two_forms(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"

    code, _, err = cli(APPS / "acme-gcp", "--out", out)

    files = list_files(out)
    forms = ("terraform", "infrastructure-manager")
    assert code == 0
    assert PAGES | {f"{form}/main.tf.json" for form in forms} <= set(files)
    assert "Preview of a Stack for gcp" in err
    assert b"terraform -chdir=terraform apply" in files["INSTRUCTIONS.md"]
    assert b"`roles/owner`" in files["PERMISSIONS.md"]


def test_every_form_and_both_pages_are_written(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"

    code, text, err = cli(APPS / "acme-aws", "--out", out)

    files = list_files(out)
    assert code == 0
    assert PAGES | {"aws.template.json", "terraform/main.tf.json", LIST} <= set(files)
    assert {line.removeprefix(f"{out}/") for line in text.splitlines()} == set(files) - {LIST}
    assert "init_script_url" in err
    assert "Preview of a Stack for aws" in err
    assert b"Preview" in files["INSTRUCTIONS.md"]


def test_two_folders_get_the_same_bytes(cli: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert cli(APPS / "acme-aws", "--out", tmp_path / name)[0] == 0

    assert list_files(tmp_path / "a") == list_files(tmp_path / "b")


def test_the_result_as_json(cli: Cli, tmp_path: Path) -> None:
    code, text, err = cli(APPS / "acme-aws", "--out", tmp_path / "out", "--json")

    result = json.loads(text)
    assert (code, err) == (0, "")
    assert (result["ok"], result["cloud"], result["region"]) == (True, "aws", "us-east-1")
    assert {file["name"] for file in result["files"]} == set(list_files(tmp_path / "out")) - {LIST}
    assert {file["form"] for file in result["files"]} == {"cloudformation", "terraform", ""}
    assert {item["code"] for item in result["diagnostics"]} >= {"not_applied"}


def test_one_form_only(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"

    assert cli(APPS / "acme-aws", "--out", out)[0] == 0
    assert cli(APPS / "acme-aws", "--out", out, "--form", "terraform")[0] == 0

    # What the first call wrote and the second did not is gone.
    assert "aws.template.json" not in list_files(out)
    assert "terraform/main.tf.json" in list_files(out)


def test_inputs_and_region_are_in_the_files(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"

    code, _, _ = cli(
        APPS / "acme-aws", "--out", out, "--region", "eu-west-1", "--input", "domain=x.example"
    )

    assert code == 0
    files = list_files(out)
    assert b"x.example" in files["aws.template.json"]
    assert b"sts.eu-west-1.amazonaws.com" in files["PERMISSIONS.md"]


def test_all_mistakes_are_named_at_once_with_file_and_line_and_nothing_is_written(
    cli: Cli, tmp_path: Path
) -> None:
    files = {
        **AWS,
        "permissions/provision.toml": ROLE,
        "permissions/deploy.json": '{\n  "Version": "2012-10-17",\n  {{ .nuon.sandbox.outputs.x }}\n}',
        "secrets.toml": '[[secret]]\nname = "a_b"\n[[secret]]\nname = "a.b"\n',
        "stack.toml": 'name = "s"\ndescription = "s"\n[[custom_nested_stacks]]\nname = "x"\nindex = 1\n'
        'template_url = "./x.yaml"\n',
        "x.yaml": "Resources:\n  A: {Type: T}\n  B: {Type: T, DependsOn: C}\n  D: !Nope x\n",
    }
    out = tmp_path / "out"

    code, text, err = cli(make_app(tmp_path, files), "--out", out, "--json")

    result = json.loads(text)
    assert (code, result["ok"], result["files"], err) == (1, False, [], "")
    errors = {
        (item["code"], item["file"], item["line"])
        for item in result["diagnostics"]
        if item["severity"] == "error"
    }
    assert errors == {
        ("template_scope", "permissions/deploy.json", 3),
        ("duplicate_name", "secrets.toml", 4),
        ("unknown_template", "x.yaml", 4),
    }
    assert not out.exists()


def test_what_a_cloud_refuses_is_named_at_the_role(cli: Cli, tmp_path: Path) -> None:
    managed = "".join(f'[[policies]]\nmanaged_policy_name = "P{number}"\n' for number in range(10))
    role = ROLE.partition("[[")[0] + managed
    app = make_app(tmp_path, {**AWS, "permissions/provision.toml": role})

    code, text, _ = cli(app, "--out", tmp_path / "out", "--json")

    (error,) = [item for item in json.loads(text)["diagnostics"] if item["severity"] == "error"]
    assert code == 1
    assert (error["code"], error["file"]) == ("too_many", "permissions/provision.toml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cloud", "mars"), "no Stack for `mars`"),
        (("--form", "bicep"), "no form `bicep`"),
        (("--input", "gone=1"), "no input `gone`"),
        (("--input", "gone"), "not NAME=VALUE"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    cli: Cli, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    code, text, err = cli(APPS / "acme-aws", "--out", tmp_path / "out", *options)

    assert (code, text) == (2, "")
    assert message in err


def test_a_local_app_has_a_stack_for_a_cloud_that_is_asked_for(cli: Cli, tmp_path: Path) -> None:
    app = make_app(tmp_path, {})

    assert "Choose a cloud" in cli(app, "--out", tmp_path / "out")[2]
    assert cli(app, "--out", tmp_path / "out", "--cloud", "aws")[0] == 0


def test_other_files_in_the_folder_are_kept(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")

    assert cli(APPS / "acme-aws", "--out", out)[0] == 0

    assert (out / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["PERMISSIONS.md", "terraform", "terraform/main.tf.json"])
def test_a_file_in_the_way_is_not_lost(cli: Cli, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("mine")

    code, _, err = cli(APPS / "acme-aws", "--out", out)

    assert code == 1
    assert "not generated" in err
    assert list_files(out) == {name: b"mine"}


def test_a_generated_file_that_was_changed_is_not_lost(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert cli(APPS / "acme-aws", "--out", out)[0] == 0
    (out / "PERMISSIONS.md").write_text("changed")

    code, _, err = cli(APPS / "acme-aws", "--out", out, "--form", "terraform")

    assert code == 1
    assert "`PERMISSIONS.md`" in err
    assert "aws.template.json" in list_files(out)


@pytest.mark.parametrize("name", ["terraform", "PERMISSIONS.md", LIST])
def test_nothing_is_written_through_a_link(cli: Cli, tmp_path: Path, name: str) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    other.mkdir()
    (out / name).symlink_to(other if name == "terraform" else other / "file")

    assert cli(APPS / "acme-aws", "--out", out)[0] == 1

    assert list_files(other) == {}


def test_a_list_that_names_files_elsewhere_removes_nothing(cli: Cli, tmp_path: Path) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    out.mkdir()
    victim.write_text("mine")
    names = {"../victim": "x", str(victim): "x"}
    (out / LIST).write_text(json.dumps({"files": names}))

    assert cli(APPS / "acme-aws", "--out", out)[0] == 0

    assert victim.read_text() == "mine"


@pytest.mark.parametrize("content", ["[]", "{", "\x00"])
def test_a_list_that_cannot_be_read_is_an_error(cli: Cli, tmp_path: Path, content: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / LIST).write_text(content)

    code, _, err = cli(APPS / "acme-aws", "--out", out)

    assert (code, list(list_files(out))) == (1, [LIST])
    assert "cannot be read" in err


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
def test_texts_of_an_app_reach_no_terminal_raw(
    cli: Cli, tmp_path: Path, more: tuple[str, ...]
) -> None:
    secret = f'[[secret]]\nname = "a{EVIL}"\ndescription = "{EVIL}{{{{ .nuon.sandbox.x }}}}"\n'
    app = make_app(tmp_path, {**AWS, "secrets.toml": secret})

    _, out, err = cli(app, "--out", tmp_path / "out", *more)

    assert [character for character in "\x1b\x07\x9b" if character in out + err] == []


SAMPLES = sorted(
    folder
    for folder in (*APPS.iterdir(), *(APPS / "habits").iterdir())
    if (folder / "metadata.toml").exists()
)


@pytest.mark.parametrize("cloud", sorted(CLOUD_STACKS))
@pytest.mark.parametrize("app", SAMPLES, ids=lambda folder: folder.name)
def test_every_sample_app_becomes_a_stack_or_has_a_reason(
    cli: Cli, tmp_path: Path, app: Path, cloud: str
) -> None:
    out = tmp_path / "out"

    code, text, _ = cli(app, "--out", out, "--cloud", cloud, "--json")

    result = json.loads(text)
    errors = [item for item in result["diagnostics"] if item["severity"] == "error"]
    assert (code == 0) == result["ok"] == (errors == []) == out.exists()
    assert all(item["hint"] and item["file"] for item in errors)


def test_the_command_needs_no_server_and_no_client() -> None:
    code = (
        "from exclave.cli.root import LazyCommand, build_root, run\n"
        "noun = {'apps': LazyCommand('exclave.cli.apps.local', 'group', '')}\n"
        f"run(build_root(noun), ['apps', 'stack', {str(APPS / 'acme-aws')!r}, '--out',"
        " '/dev/null/x'], {})\n"
    )

    assert list_imported(code, ("pydantic", "httpx", "fastapi", "sqlalchemy")) == []
