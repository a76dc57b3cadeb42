import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from exclave.cli.root import LazyCommand, build_root, run
from tests.support.imports import list_imported
from tests.unit.appconfig.directories import APPS, make_app, read_broken

Cli = Callable[..., tuple[int, str, str]]
HEAVY = ("pydantic", "httpx", "rich", "fastapi", "sqlalchemy", "cryptography", "asyncio", "ssl")
APPS_NOUN = {"apps": LazyCommand("exclave.cli.apps.local", "group", "App directories.")}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*argv: str | Path) -> tuple[int, str, str]:
        code = run(build_root(APPS_NOUN), ["apps", *map(str, argv)], {})
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def test_validate_answers_programs_in_this_shape(cli: Cli, tmp_path: Path) -> None:
    app = make_app(tmp_path, {"metadata.toml": 'version = "v2"\nx = 1\n'})

    code, out, err = cli("validate", app, "--json")

    told = json.loads(out)
    hashes = [each.pop("hash") for each in told["components"]]
    assert (code, err) == (0, "")
    assert all(each.startswith("sha256:") for each in hashes)
    assert told == {
        "ok": True,
        "app": "acme",
        "diagnostics": [
            {
                "severity": "warning",
                "code": "unknown_key",
                "file": "metadata.toml",
                "line": 2,
                "column": 1,
                "message": "unknown key `x`",
                "hint": "It has no effect; remove it. Known here are `version`, `display_name`, "
                "`description`, `slack_webhook_url`, `readme`, `label_colors`, `default_labels`.",
            }
        ],
        "components": [
            {"name": "api", "type": "helm_chart", "dependencies": ["database"]},
            {"name": "database", "type": "terraform_module", "dependencies": []},
        ],
        "order": [["database"], ["api"]],
    }


def test_strict_turns_it_into_a_failure(cli: Cli, tmp_path: Path) -> None:
    app = make_app(tmp_path, {"metadata.toml": 'version = "v2"\nx = 1\n'})

    code, out, _ = cli("validate", app, "--strict")

    assert code == 1
    assert out.endswith("acme: failed, 1 error, 2 components\n")


def test_a_directory_that_does_not_exist_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("validate", tmp_path / "gone")

    assert (code, out) == (2, "")
    assert "there is no directory" in err


def test_graph_draws_a_tree(cli: Cli) -> None:
    code, out, err = cli("graph", APPS / "acme-aws", "--input", "replicas")

    assert (code, err) == (0, "")
    assert out == (
        "edge_cluster  pulumi\n"
        "overlay  kubernetes_manifest\n"
        "search  kubernetes_manifest\n"
        "api_image  container_image\n"
        "worker_image  container_image\n"
        "built  docker_build\n"
        "database  terraform_module\n"
        "└─ api  helm_chart · also needs edge_cluster, api_image\n"
        "once  job\n"
    )


def test_graph_marks_what_an_input_touches(cli: Cli) -> None:
    _, out, _ = cli("graph", APPS / "acme-aws", "--input", "domain")

    marked = [line.split("* ")[1].split("  ")[0] for line in out.splitlines() if "* " in line]
    assert marked == ["sandbox", "search", "database", "api"]


def test_graph_speaks_dot_mermaid_and_json(cli: Cli) -> None:
    base = APPS / "base"

    assert cli("graph", base, "--format", "dot")[1] == (
        'digraph app {\n  rankdir=LR;\n  node [shape=box];\n  "api" [label="api\\nhelm_chart"];\n'
        '  "database" [label="database\\nterraform_module"];\n  "database" -> "api";\n}\n'
    )
    assert cli("graph", base, "--format", "mermaid")[1] == (
        'flowchart LR\n  c0["api<br/>helm_chart"]\n  c1["database<br/>terraform_module"]\n'
        "  c1 --> c0\n"
    )
    assert json.loads(cli("graph", base, "--format", "json", "--input", "domain")[1]) == {
        "app": "base",
        "components": [
            {"name": "api", "type": "helm_chart"},
            {"name": "database", "type": "terraform_module"},
        ],
        "edges": [{"from": "api", "to": "database", "reasons": ["explicit"]}],
        "order": [["database"], ["api"]],
        "teardown": ["api", "database"],
        "touched": {"sandbox": False, "components": ["api"]},
    }


def test_graph_of_a_cycle_says_so(cli: Cli, tmp_path: Path) -> None:
    read_broken("dependency_cycle", tmp_path)

    code, out, err = cli("graph", tmp_path / "acme")

    assert code == 1
    assert "bucket  ! on a cycle\nweb  ! on a cycle\n" in out
    assert "apps validate" in err


def test_graph_refuses_an_input_that_does_not_exist(cli: Cli) -> None:
    code, _, err = cli("graph", APPS / "base", "--input", "gone")

    assert code == 2
    assert "there is no input `gone`" in err


def test_render_shows_values_and_what_is_unknown(cli: Cli, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"nuon": {"inputs": {"inputs": {"domain": "a.example.com"}}}}))
    files = {
        "components/api.toml": (APPS / "base/components/api.toml").read_text()
        + 'host = "{{ .nuon.components.database.outputs.host }}"\n'
        + "lines = '''\na\n{{ .nuon.inputs.inputs.domain }}'''\n"
    }

    code, out, err = cli("render", make_app(tmp_path, files), "--values", state)

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "components.api",
        "  values.domain = a.example.com",
        "  values.host = ? unknown: .nuon.components does not exist (components/api.toml:13)",
        "  values.lines =",
        "    a",
        "    a.example.com",
        "",
        "2 of 3 fields rendered, 1 unknown",
    ]


def test_render_answers_programs_and_takes_defaults_of_inputs(cli: Cli) -> None:
    _, out, _ = cli("render", APPS / "acme-aws", "--only", "metadata", "--json")

    told = json.loads(out)
    assert told["complete"] is False
    assert [each["field"] for each in told["fields"]] == ["readme", "default_labels.region"]
    assert told["fields"][0]["value"] is None


@pytest.mark.parametrize("text", ["[]", "{", ""])
def test_render_refuses_a_state_that_is_none(cli: Cli, tmp_path: Path, text: str) -> None:
    state = tmp_path / "state.json"
    if text:
        state.write_text(text)

    assert cli("render", APPS / "base", "--values", state)[0] == 2


def test_render_refuses_a_part_that_does_not_exist(cli: Cli) -> None:
    assert cli("render", APPS / "base", "--only", "components.gone")[0] == 2


def test_schema_lists_the_kinds_or_prints_one(cli: Cli) -> None:
    listed = cli("schema")[1]
    one = json.loads(cli("schema", "helm")[1])
    every = json.loads(cli("schema", "--json")[1])

    assert "helm_chart           components/\n" in listed
    assert one["properties"]["type"]["const"] == "helm_chart"
    assert every["helm_chart"] == one
    assert len(json.loads(cli("schema", "component")[1])["allOf"]) == 7
    assert cli("schema", "heml")[0] == 2


def test_a_new_app_is_green(cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("new", tmp_path / "demo")

    assert code == 0
    assert out.splitlines()[0] == f"{tmp_path}/demo/metadata.toml"
    assert "exclave apps validate" in err
    assert cli("validate", tmp_path / "demo", "--strict") == (
        0,
        "demo: ok, no findings, 2 components\n",
        "",
    )


def test_a_new_app_overwrites_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "x").touch()

    assert cli("new", tmp_path / "demo")[0] == 1
    assert cli("new", tmp_path / "My App")[0] == 2
    assert json.loads(cli("new", tmp_path / "other", "--json")[1])["files"][0] == "metadata.toml"


def test_offline_commands_load_no_heavy_module() -> None:
    code = (
        "from exclave.cli.root import LazyCommand, build_root, run\n"
        "noun = {'apps': LazyCommand('exclave.cli.apps.local', 'group', '')}\n"
        f"run(build_root(noun), ['apps', 'validate', {str(APPS / 'acme-aws')!r}], {{}})\n"
    )

    assert list_imported(code, HEAVY) == []


def test_colours_are_for_terminals_only(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read_broken("unknown_key", tmp_path)
    plain = cli("validate", tmp_path / "acme")[1]
    monkeypatch.setattr("exclave.cli.apps.local._wants_colour", lambda: True)

    painted = cli("validate", tmp_path / "acme")[1]

    assert "\x1b[" not in plain
    assert plain == re.sub(r"\x1b\[[0-9;]*m", "", painted)


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("verb", ["validate", "graph", "render"])
def test_texts_of_an_app_reach_no_terminal_raw(
    cli: Cli, tmp_path: Path, verb: str, more: tuple[str, ...]
) -> None:
    evil = "\\u001B]0;PWNED\\u0007\\u009B2J\\u202E"
    files = {
        "metadata.toml": f'version = "v2"\n"x{evil}" = 1\ndescription = "{evil}{{{{ .nuon.id }}}}"\n',
        "components/evil.toml": f'name = "evil{evil}"\ntype = "job{evil}"\ndependencies = ["{evil}"]\n',
        "components/evil\x1b]0;PWNED\x07.toml": "name = [",
        "README.md": "\x1b]0;PWNED\x07 {{ .nuon.x }}",
    }
    app = make_app(tmp_path, files)

    _, out, err = cli(verb, app, *more)

    assert [each for each in "\x1b\x07\x9b\u202e" if each in out + err] == []
    assert more == () or json.loads(out)
