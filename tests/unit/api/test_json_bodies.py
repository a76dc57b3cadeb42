"""Bodies: so many values and no more, whatever their texts look like."""

import asyncio
import json

import pytest

from exclave.api.requests import MOST_VALUES, LimitedRequest, parse_json, read_model
from exclave.wire.model import Page


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


async def test_other_requests_run_between_parsing_and_checking_a_large_body() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    small, large = (make_request(json.dumps({"items": ["x" * n]}).encode()) for n in (10, 100_000))
    await small.body()
    await large.body()
    other = asyncio.create_task(count_turns())

    await read_model(small, Page[str])
    turns_of_small = turns
    await read_model(large, Page[str])
    other.cancel()

    assert (turns_of_small, turns) == (0, 2)


def make_request(body: bytes) -> LimitedRequest:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", b"application/json")]
    return LimitedRequest({"type": "http", "headers": headers}, receive)
