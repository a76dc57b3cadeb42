"""Whatever stands in the files: no uncaught exception, and nothing outside is opened."""

import builtins
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exclave.appconfig.catalog import KINDS, walk_fields
from exclave.appconfig.read_app import read_app
from exclave.cli.apps.findings import describe, write_findings
from tests.unit.appconfig.directories import make_app
from tests.unit.appconfig.fuzz import run_seed

KEYS = sorted({key for _, key, _ in walk_fields()})
FILES = [
    kind.where if kind.where.endswith(".toml") else f"{kind.where}x.toml" for kind in KINDS.values()
]
TEXTS = st.one_of(
    st.sampled_from(
        [
            "./x.toml",
            "../x",
            "../../../etc/passwd",
            "./nuon",
            "git::x",
            "http://x",
            "file:///x",
            "",
            "{{ .nuon.inputs.inputs.x }}",
            "{{ .nuon.components.api.outputs }}",
            "{{ if .nuon }}",
            "api",
            "helm_chart",
            "manual",
            "cron",
            "*",
            "{{ nuon.x }}",
            "\x00",
            "./a\nb",
            "~/x",
            "/etc",
        ]
    ),
    st.text(max_size=12),
)
SCALARS = st.one_of(TEXTS, st.integers(), st.booleans(), st.floats(allow_nan=True))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=5)), inner, max_size=4),
    ),
    max_leaves=8,
)
TABLES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6)
COMPONENT = st.sampled_from(["", *(f'type = "{kind}"\n' for kind in KINDS)])


def write_toml(value: Any) -> str:
    match value:
        case dict():
            return (
                "{"
                + ", ".join(f"{json.dumps(k)} = {write_toml(v)}" for k, v in value.items())
                + "}"
            )
        case list():
            return f"[{', '.join(map(write_toml, value))}]"
        case str():
            return json.dumps(value)
        case bool():
            return str(value).lower()
        case _:
            return repr(value)


def check(files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reading = read_app(make_app(Path(folder), files))
        json.dumps(describe(reading))
        write_findings(reading, colour=True)


QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(file=st.sampled_from(FILES), head=COMPONENT, table=TABLES)
def test_any_values_of_known_keys_are_survived(file: str, head: str, table: dict[str, Any]) -> None:
    table.pop("type", None) if head else None
    lines = [f"{json.dumps(key)} = {write_toml(value)}" for key, value in table.items()]

    check({file: head + "\n".join(lines) + "\n"})


@QUICK
@given(file=st.sampled_from(FILES), text=st.text(max_size=60))
def test_any_text_is_survived(file: str, text: str) -> None:
    check({file: text})


@QUICK
@given(text=st.text(alphabet="ab.[]{}=\"'\\\n #,1", max_size=80))
def test_anything_like_toml_is_survived(text: str) -> None:
    check({"metadata.toml": text, "components/x.toml": text})


@QUICK
@given(text=st.text(alphabet="{}.nuo -$:=()|\"'`if end\n", max_size=60))
def test_anything_like_a_template_is_survived(text: str) -> None:
    check(
        {
            "README.md": "{{ .nuon" + text,
            "metadata.toml": 'version = "v2"\nreadme = "./README.md"\n',
        }
    )


@pytest.mark.parametrize(
    "text", ["x = " + "[" * 5000, "[" + "a." * 3000 + "a]", "x = " + "9" * 9000]
)
def test_deep_and_long_toml_is_survived(text: str) -> None:
    check({"metadata.toml": text})


@QUICK
@given(table=st.dictionaries(st.sampled_from(["readme", "source", "contents"]), TEXTS, max_size=3))
def test_no_file_outside_the_directory_is_opened(table: dict[str, str]) -> None:
    opened: list[str] = []
    real = builtins.open

    def watch(file: Any, *rest: Any, **more: Any) -> Any:
        opened.append(str(file))
        return real(file, *rest, **more)

    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        app = make_app(
            Path(folder), {"metadata.toml": lines, "policies/x.toml": lines, "runner.toml": lines}
        )
        patch.setattr(builtins, "open", watch)
        read_app(app)

    assert all(path.startswith(str(app)) for path in opened)


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_app_is_survived(seed: int) -> None:
    run_seed(seed)
