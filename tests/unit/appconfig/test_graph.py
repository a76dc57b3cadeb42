from pathlib import Path

import pytest

from exclave.appconfig.graph import Reason, Touched, find_cycles
from exclave.appconfig.read_app import CheckedApp, read_app
from tests.unit.appconfig.directories import APPS, REPO, codes, read


def component(name: str, *needs: str, text: str = "", kind: str = "terraform_module") -> str:
    listed = ", ".join(f'"{need}"' for need in needs)
    chart = 'chart_name = "acme-x"\n' if kind == "helm_chart" else 'terraform_version = "1.11.3"\n'
    return (
        f'name = "{name}"\ntype = "{kind}"\n{chart}dependencies = [{listed}]\n{REPO}'
        f"[{'values' if kind == 'helm_chart' else 'vars'}]\nx = '''{text}'''\n"
    )


def graph_of(folder: Path, **components: str) -> CheckedApp:
    files = {f"components/{name}.toml": text for name, text in components.items()}
    reading = read(folder, files)
    assert reading.ok, reading.diagnostics
    return reading


def test_needs_are_explicit_implied_or_come_from_a_context() -> None:
    graph = read_app(APPS / "acme-aws").graph

    assert graph.needs["api"] == ("api_image", "database", "edge_cluster")
    assert graph.reasons["api", "api_image"] == {Reason.IMPLIED}
    assert graph.reasons["api", "database"] == {Reason.EXPLICIT, Reason.IMPLIED}
    assert graph.reasons["api", "edge_cluster"] == {Reason.CONTEXT}


@pytest.mark.parametrize(
    "text",
    [
        "{{ .nuon.components.a.outputs.x }}",
        "{{ .nuon.install.components.a.outputs.x }}",
        '{{ index .nuon.components "a" "outputs" "x" }}',
        "{{ with .nuon.components.a }}{{ .outputs.x }}{{ end }}",
        "{{ $c := .nuon.components.a }}{{ $c.outputs.x }}",
        "{{ toJson .nuon.components.a }}",
        "# nuon.components.a.outputs.x in a comment",
    ],
)
def test_a_mention_of_outputs_is_a_need(tmp_path: Path, text: str) -> None:
    reading = graph_of(tmp_path, a=component("a"), b=component("b", text=text))

    assert reading.graph.needs["b"] == ("a",)


@pytest.mark.parametrize(
    "text", ["{{ .nuon.components.a.status }}", "{{ .nuon.install.id }}", "components.a.outputs.x"]
)
def test_other_mentions_are_none(tmp_path: Path, text: str) -> None:
    reading = graph_of(tmp_path, a=component("a"), b=component("b", text=text))

    assert reading.graph.needs["b"] == ()


def test_groups_run_at_once_and_the_order_is_that_of_the_platform(tmp_path: Path) -> None:
    graph = graph_of(
        tmp_path,
        api=component("api", "database", kind="helm_chart"),
        z_chart=component("z_chart", kind="helm_chart"),
        a_chart=component("a_chart", kind="helm_chart"),
        last=component("last", "api", "z_chart"),
    ).graph

    assert graph.groups() == (("database", "a_chart", "z_chart"), ("api",), ("last",))
    assert graph.order() == ("database", "a_chart", "z_chart", "api", "last")
    assert graph.teardown_order() == ("last", "api", "z_chart", "a_chart", "database")


def test_dependents_are_found_downstream(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, a=component("a"), b=component("b", "a"), c=component("c", "b")).graph

    assert graph.with_dependents(["b"]) == ("b", "c")
    assert graph.with_dependents(["unknown"]) == ()


def test_an_input_touches_its_readers_and_what_needs_them(tmp_path: Path) -> None:
    text = '{{ index .nuon.inputs.inputs "domain" }}'
    graph = graph_of(tmp_path, a=component("a", text=text), b=component("b", "a")).graph

    assert graph.touched_by(["domain"]) == Touched(sandbox=False, components=("a", "b", "api"))
    assert graph.touched_by(["other"]) == Touched(sandbox=False, components=())


def test_an_input_of_the_sandbox_touches_the_sandbox() -> None:
    graph = read_app(APPS / "acme-aws").graph

    assert graph.touched_by(["domain"]).sandbox
    assert not graph.touched_by(["debug"]).sandbox


def test_a_cycle_is_shown_once_and_leaves_the_rest_in_order(tmp_path: Path) -> None:
    files = {
        "components/a.toml": component("a", "c"),
        "components/b.toml": component("b", "a"),
        "components/c.toml": component("c", "b"),
        "components/d.toml": component("d", "c"),
    }

    reading = read(tmp_path, files)

    told = [each.message for each in reading.diagnostics]
    assert told == ["components need each other in a circle: a → c → b → a"]
    assert reading.graph.groups() == (("database",), ("api",))


def test_what_is_on_may_not_need_what_is_off(tmp_path: Path) -> None:
    off = "toggleable = true\n" + component("a")

    reading = read(tmp_path, {"components/a.toml": off, "components/b.toml": component("b", "a")})

    assert codes(reading) == {"conflict"}
    assert reading.ok


def test_several_cycles_are_all_found() -> None:
    needs = {"a": ["b"], "b": ["a", "c"], "c": ["d"], "d": ["c"], "e": ["e"]}

    assert find_cycles(needs) == [("a", "b", "a"), ("c", "d", "c"), ("e", "e")]


def test_the_hash_follows_definition_and_files_and_nothing_else(tmp_path: Path) -> None:
    chart = component("web", "api", "database", kind="helm_chart") + (
        '[[values_file]]\ncontents = "./{}.yaml"\n'
    )
    base = {"components/web.toml": chart.format("a"), "components/a.yaml": "x: 1"}
    first = read(tmp_path / "1", base).hashes["web"]
    moved = {"components/deep/w.toml": chart.format("b"), "b.yaml": "x: 1"}
    swapped = {
        **base,
        "components/web.toml": base["components/web.toml"].replace(
            '"api", "database"', '"database", "api"'
        ),
    }
    spelled = {
        **base,
        "components/web.toml": base["components/web.toml"].replace(
            "type =", "take_ownership = false\ntype ="
        ),
    }
    changed = {**base, "components/a.yaml": "x: 2"}

    assert read(tmp_path / "2", moved).hashes["web"] == first
    assert read(tmp_path / "3", swapped).hashes["web"] == first
    assert read(tmp_path / "4", spelled).hashes["web"] == first
    assert read(tmp_path / "5", changed).hashes["web"] != first
    assert codes(read(tmp_path / "6", moved)) == set()
