"""Every field of the typed model is used by a fixture app, and stands in the reference."""

import dataclasses
import importlib
import importlib.util
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exclave.appconfig.catalog import KINDS, find_kind, walk_fields, walk_tables
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Report
from exclave.appconfig.diagnostics.sources import Source
from exclave.appconfig.model.fields import Field, Shape, Table
from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.model.kinds.shared import Repo
from exclave.appconfig.read_app import read_app
from exclave.appconfig.reading.decode import Decoder
from exclave.appconfig.reading.directory import Directory, Limits
from exclave.appconfig.reading.loading import Loader
from exclave.appconfig.reading.references import References
from exclave.appconfig.schema import build_schema
from exclave.base.errors import InvalidInput
from tests.unit.appconfig.directories import APPS, WHOLE

PAGES = Path(__file__).parents[4] / "docs" / "reference" / "app-config"


def declarer(model: type[Table], field: Field) -> str:
    return next(base.__name__ for base in reversed(model.__mro__) if field.attribute in vars(base))


def used(value: Table) -> Iterator[tuple[str, str]]:
    for key, field in type(value).FIELDS.items():
        if field.attribute not in vars(value):
            continue
        yield declarer(type(value), field), key
        inner = getattr(value, field.attribute)
        match field.shape:
            case Shape.TABLE:
                yield from used(inner)
            case Shape.TABLES:
                for each in inner:
                    yield from used(each)
            case Shape.TABLE_MAP:
                for each in inner.values():
                    yield from used(each)
            case _:
                pass


def test_every_field_is_used_by_a_fixture_app(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[Table] = []
    decode = importlib.import_module("exclave.appconfig.reading.decode").Decoder.decode

    def watch(self: Any, model: type[Table], data: Any, at: Any = ()) -> Table:
        value: Table = decode(self, model, data, at)
        decoded.append(value)
        return value

    monkeypatch.setattr("exclave.appconfig.reading.decode.Decoder.decode", watch)
    for name in WHOLE:
        read_app(APPS / name)

    known = {(declarer(model, field), key) for model, key, field in walk_fields()}
    assert known - {pair for value in decoded for pair in used(value)} == set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_a_line_in_the_reference(kind: str) -> None:
    page = (PAGES / f"{kind}.md").read_text()

    for model, key, field in walk_fields():
        if model is KINDS[kind].model:
            assert f"| `{key}` |" in page
            assert field.doc.replace("|", "\\|") in page


def test_every_code_has_a_line_in_the_reference() -> None:
    page = (PAGES / "diagnostics.md").read_text()

    assert all(f"## {code}\n" in page and code.doc in page for code in Code)


def test_every_field_says_what_it_is_for() -> None:
    fields = [*walk_fields()]

    assert [key for _, key, field in fields if not field.doc.endswith(".")] == []
    assert [key for _, key, field in fields if not (field.example or field.model)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_is_a_value_that_the_kind_takes(kind: str, tmp_path: Path) -> None:
    report = Report()
    directory = Directory(tmp_path, report, Limits())
    for _, table in walk_tables(KINDS[kind].model):
        for key, field in table.FIELDS.items():
            if field.example and not (field.reference or field.path):
                source = Source("example.toml", f"{key} = {field.example}\n")
                decoder = Decoder(source, report, References(directory, ("",)))
                decoder.decode(table, tomllib.loads(source.text))

    bad = [
        each
        for each in report.sorted()
        if each.code not in {"missing_key", "wanted_key", "deprecated"}
    ]
    assert bad == []


def test_the_pages_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location(
        "pages", PAGES.parents[1] / "generate_app_config.py"
    )
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)

    written = dict(pages.write_pages())

    assert {file.name for file in PAGES.iterdir()} == set(written)
    assert [name for name, text in written.items() if (PAGES / name).read_text() != text] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_of_a_kind_is_a_schema(kind: str) -> None:
    validator = importlib.import_module("jsonschema").Draft7Validator

    validator.check_schema(build_schema(KINDS[kind]))


def test_the_fixture_apps_fit_the_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    validator = importlib.import_module("jsonschema").Draft7Validator
    by_model = {kind.model: validator(build_schema(kind)) for kind in KINDS.values()}
    seen = []
    choose = Loader._open

    def watch(self: Loader, source: Any, data: Any, model: type[Table], base: str) -> Any:
        decoder = choose(self, source, data, model, base)
        seen.append(
            (source.path, data, self._choose_component(decoder, data))
            if model.__name__ == "Component"
            else (source.path, data, model)
        )
        return decoder

    monkeypatch.setattr(Loader, "_open", watch)
    for name in WHOLE:
        read_app(APPS / name)

    assert len(seen) > 50
    for path, data, model in seen:
        plain = json.loads(json.dumps(data, default=str))
        assert [each.message for each in by_model[model].iter_errors(plain)] == [], path


def test_kinds_are_found_by_the_names_that_editors_use() -> None:
    assert find_kind("helm").name == "helm_chart"
    assert find_kind("container-image").name == "container_image"
    with pytest.raises(InvalidInput, match="no file kind"):
        find_kind("nothing")


def test_values_are_frozen_and_compared_by_their_fields() -> None:
    repo = Repo(repo="a/b", branch="main")

    with pytest.raises(dataclasses.FrozenInstanceError):
        repo.branch = "x"  # type: ignore[misc]
    with pytest.raises(TypeError, match="wrong"):
        Repo(wrong=1)  # type: ignore[call-arg]
    assert repo == Repo(repo="a/b", branch="main")
    assert repo != Repo(repo="a/b")
    assert repr(repo) == "Repo(repo='a/b', branch='main')"
    assert HelmChart().namespace == "{{.nuon.install.id}}"
