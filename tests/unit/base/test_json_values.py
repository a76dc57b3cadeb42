"""JSON of unknown shape is narrowed where it is read."""

import pytest

from exclave.base.json_values import (
    Json,
    list_or_empty,
    object_or_empty,
    parse_object,
    require_list,
    require_object,
    require_text,
    text_or_empty,
)


def test_a_document_that_is_an_object_is_returned() -> None:
    assert parse_object('{"a": [1, null]}', "the state") == {"a": [1, None]}


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_a_document_that_is_not_json_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="the state is not valid JSON"):
        parse_object(text, "the state")


@pytest.mark.parametrize("text", ["[]", "1", '"a"', "null", "true"])
def test_a_document_that_is_no_object_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="the state is not an object"):
        parse_object(text, "the state")


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "a", ["a"], {"a": 1}])
def test_a_value_of_another_type_is_empty(value: Json) -> None:
    assert object_or_empty(value) == (value if isinstance(value, dict) else {})
    assert list_or_empty(value) == (value if isinstance(value, list) else ())
    assert text_or_empty(value) == (value if isinstance(value, str) else "")


def test_a_required_value_of_another_type_is_refused_by_name() -> None:
    assert require_object({"a": 1}, "it") == {"a": 1}
    assert require_list([1], "it") == [1]
    assert require_text("a", "it") == "a"
    for require in (require_object, require_list, require_text):
        with pytest.raises(ValueError, match=r"`serial` of the state is not an? "):
            require(1, "`serial` of the state")
    with pytest.raises(ValueError, match="it is not a list"):
        require_list("a text is no list", "it")
