import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.appconfig.catalog import KINDS
from exclave.appconfig.model.fields import NOTHING, Field, Shape, Table
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.appconfig.model.kinds.triggers import Filter
from exclave.appconfig.read_app import read_app
from exclave.appconfig.stored.freezing import FrozenElsewhere, freeze, thaw
from exclave.base.json_values import JsonObject
from tests.unit.appconfig.directories import APPS, WHOLE, read

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_PLAIN: dict[Shape, st.SearchStrategy[object]] = {
    Shape.TEXT: _TEXT,
    Shape.ANY: _TEXT,
    Shape.FLAG: st.booleans(),
    Shape.NUMBER: st.integers(0, 9),
    Shape.TEXTS: st.lists(_TEXT, max_size=2).map(tuple),
    Shape.TEXT_MAP: st.dictionaries(_TEXT, _TEXT, max_size=2),
    Shape.MAPS: st.dictionaries(_TEXT, _TEXT, max_size=2),
    Shape.FLAG_MAP: st.dictionaries(_TEXT, st.booleans(), max_size=2),
}


@pytest.mark.parametrize("name", WHOLE)
def test_every_part_of_the_fixture_apps_survives_freezing(name: str) -> None:
    for entry in read_app(APPS / name).app.entries:
        frozen = json.loads(json.dumps(freeze(entry.value)))

        assert thaw(type(entry.value), frozen) == entry.value


@st.composite
def tables(draw: st.DrawFn, model: type[Table], depth: int = 0) -> Table:
    """Make any value of a table."""
    chosen = draw(st.lists(st.sampled_from(list(model.FIELDS.values())), max_size=4))
    return model(**{field.attribute: draw(_values(field, depth)) for field in chosen})


def _values(field: Field, depth: int) -> st.SearchStrategy[object]:
    if field.model is not None:
        inner = tables(field.model, depth + 1)
        size = 0 if depth > 2 else 2
        match field.shape:
            case Shape.TABLE:
                return st.none() | inner
            case Shape.TABLES:
                return st.lists(inner, max_size=size).map(tuple)
            case _:
                return st.dictionaries(_TEXT, inner, max_size=size)
    plain = _PLAIN[field.shape]
    return st.none() | plain if field.default is None else plain


@pytest.mark.parametrize("kind", KINDS)
def test_any_value_of_any_kind_survives_freezing(kind: str) -> None:
    model = KINDS[kind].model

    @given(tables(model))
    def check(value: Table) -> None:
        frozen = freeze(value)

        assert thaw(model, json.loads(json.dumps(frozen))) == value
        assert freeze(thaw(model, frozen)) == frozen

    check()


def test_only_what_differs_from_its_default_is_kept() -> None:
    module = TerraformModule(type="terraform_module", name="a", build_timeout="5m", vars=NOTHING)

    assert freeze(module) == {"type": "terraform_module", "name": "a"}


def test_keys_are_those_of_the_file() -> None:
    assert freeze(Filter(origin="headers")) == {"from": "headers"}


def test_files_are_part_of_it(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        {"README.md": "# Hi\n", "metadata.toml": 'version = "v2"\nreadme = "./README.md"\n'},
    )

    assert freeze(reading.app.list(type(reading.app.entries[0].value))[0])["readme"] == "# Hi\n"


def test_a_key_of_a_newer_format_is_refused() -> None:
    with pytest.raises(FrozenElsewhere) as caught:
        thaw(TerraformModule, {"name": "a", "quantum": True})

    assert "quantum" in str(caught.value)


@pytest.mark.parametrize(
    ("frozen", "complaint"),
    [
        ({"dependencies": "api"}, "`dependencies` is not a list in TerraformModule"),
        ({"var_file": ["a"]}, "`var_file` is not an object in TerraformModule"),
        ({"public_repo": "here"}, "`public_repo` is not an object in TerraformModule"),
        ({"public_repo": {"quantum": 1}}, "`quantum` is not a key of Repo"),
    ],
)
def test_a_value_of_another_shape_is_refused(frozen: JsonObject, complaint: str) -> None:
    with pytest.raises(FrozenElsewhere, match=complaint):
        thaw(TerraformModule, frozen)
