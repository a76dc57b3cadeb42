"""Bodies: so many values and no more, whatever their texts look like."""

import json

import pytest

from exclave.api.requests import MOST_VALUES, parse_json


def test_a_body_may_have_many_values() -> None:
    values = list(range(MOST_VALUES - 2))

    assert parse_json(json.dumps(values).encode()) == values


@pytest.mark.parametrize("piece", ["1", '""', "[]", "{}"])
def test_a_body_with_too_many_values_is_refused(piece: str) -> None:
    body = "[" + ",".join([piece] * (MOST_VALUES + 1)) + "]"

    with pytest.raises(json.JSONDecodeError, match="more than 50000 values"):
        parse_json(body.encode())


@pytest.mark.parametrize("text", [",[{" * MOST_VALUES, '",\\' * MOST_VALUES])
def test_what_stands_in_texts_is_not_counted(text: str) -> None:
    assert parse_json(json.dumps({"a": text}).encode()) == {"a": text}


@pytest.mark.parametrize("body", ['"' * 300_000, '["' + '\\"' * 300_000, "[" * 300_000])
def test_what_is_no_json_is_refused(body: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        parse_json(body.encode())
