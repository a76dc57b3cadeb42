"""Every body with something wrong in it: refused by name, stored nowhere."""

from typing import Any

import pytest

from exclave.api.requests import LIMITS
from tests.integration.api.kit import Site
from tests.integration.api.matrix import ROWS, Row

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXTS = {
    "name": "n" * 64, "account": "n" * 64, "reason": "r" * 2001, "comment": "c" * 2001,
    "version": "v" * 201, "token": "t" * 300, "nonce": "n" * 65, "digest": "d" * 80,
    "public_key": "k" * 44, "signature": "s" * 87, "queue_id": "q" * 40, "runner_id": "r" * 40,
}  # fmt: skip
WRONG: tuple[Any, ...] = (None, [[]])
WITHOUT_JSON = (
    "/cancel", "/retry", "/log", "/sync", "/stack", "/state", "/confirmed", "/attachments/{name}",
)  # fmt: skip
"""Ends of routes that take no body, or bytes."""
WITH_BODY = [
    row for row in ROWS if row.method in {"POST", "PUT"} and not row.route.endswith(WITHOUT_JSON)
]


@pytest.fixture
def site(shared_site: Site) -> Site:
    return shared_site


@pytest.mark.parametrize("row", WITH_BODY, ids=lambda row: f"{row.app} {row.route}")
async def test_a_body_with_something_wrong_is_refused(site: Site, row: Row) -> None:
    call = await row.make(site)
    body: dict[str, Any] = call.rest["json"]
    token = call.runner or None
    limit = LIMITS.get(row.route, 1 << 20)
    nul = b'{"\\u0000": "x"}', b'{"name": "a\\u0000b"}', b'{"reason": "abc \\\\\\u0000"}'
    broken: list[dict[str, Any]] = [
        {"json": {**body, "surprise": 1}},
        *({"json": {**body, name: value}} for name in body for value in WRONG),
        *({"json": {**body, name: {"a": 1}}} for name in body if not isinstance(body[name], dict)),
        *({"json": {**body, name: TEXTS[name]}} for name in body if name in TEXTS),
        *({"json": {**body, name: "a\0b"}} for name in body if isinstance(body[name], str)),
        {"json": []},
        {"json": "text"},
        {"json": None},
        {"content": b""},
        *(
            {"content": content, "headers": {"Content-Type": "application/json"}}
            for content in (
                b"",
                b"{",
                b"\xff\xfe",
                b"[" * min(50_000, limit),
                b'{"a": NaN}',
                b"1" * min(5000, limit),
                b'"\\ud800"',
                *nul,
            )
        ),
        {"content": b"{}", "headers": {"Content-Type": "text/plain"}},
    ]

    for rest in broken:
        reply = await site.call(row.method, call.path, token, app=row.app, **rest)

        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input"), rest
        assert reply.json()["errors"][0]["message"]
        assert "input" not in reply.json()["errors"][0]


async def test_each_wrong_field_is_named(site: Site) -> None:
    steps = [{"name": "UP"}, {"name": "two", "kind": "gate", "mutating": True}]
    body = {"name": "w", "queue_id": site.queue, "steps": steps, "colour": "red"}

    reply = await site.call("POST", "/v1/workflows", json=body)

    fields = {error["field"] for error in reply.json()["errors"]}
    assert {"body.steps.0.name", "body.steps.1", "body.colour"} <= fields


async def test_a_backslash_before_u0000_is_text_and_not_a_nul(site: Site) -> None:
    script = {"name": "s", "script": "printf '\\u0000'"}
    steps = [{"name": "a", "job": {"kind": "script", "steps": [script]}}]

    reply = await site.call(
        "POST", "/v1/workflows", json={"name": "w", "queue_id": site.queue, "steps": steps}
    )

    assert reply.status_code == 202


@pytest.mark.parametrize(
    "steps",
    [
        [{"name": "a", "kind": "wait", "needs": ["a"]}],
        [{"name": "a", "kind": "wait", "needs": ["b"]}],
        [{"name": "a", "kind": "wait"}, {"name": "a", "kind": "wait"}],
        [{"name": "a", "job": {"kind": "noop"}, "mutating": True, "lanes": ["sandbox", "sandbox"]}],
        [{"name": "a", "job": {"kind": "noop"}, "lanes": ["kitchen"]}],
        [{"name": "a", "kind": "timer", "delay_s": 1e999}],
        [{"name": "a", "kind": "timer"}],
        [],
    ],
)
async def test_a_graph_that_cannot_run_is_refused(site: Site, steps: list[Any]) -> None:
    content = str({"name": "w", "queue_id": site.queue, "steps": steps})
    content = content.replace("'", '"').replace("inf", "1e999").replace("True", "true")

    reply = await site.call(
        "POST", "/v1/workflows", content=content, headers={"Content-Type": "application/json"}
    )

    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input")


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=201", "limit=x", "limit=1e3", "cursor=x", "cursor=%00", "cursor=%27--",
        "state=asleep", "queue_id=1", "page=2", "queue_id=%F0%9F%92%A9", "limit=1&limit=999",
    ],
)  # fmt: skip
async def test_a_query_with_something_wrong_is_refused(site: Site, query: str) -> None:
    reply = await site.call("GET", f"/v1/workflows?{query}")

    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input")


@pytest.mark.parametrize(
    "query",
    [
        "", "q=", f"q={'x' * 201}", "q=%00", "q=x&cursor=exe_1:1",
        f"q=x&cursor=exe_{'0' * 26}:%C2%B2", f"q=x&cursor=exe_{'0' * 26}:{'9' * 5000}",
    ],
)  # fmt: skip
async def test_a_search_with_something_wrong_is_refused(site: Site, query: str) -> None:
    reply = await site.call("GET", f"/v1/logs/search?queue_id={site.queue}&{query}")

    assert reply.status_code == 422


async def test_a_piece_of_log_that_is_none_is_refused(site: Site) -> None:
    row = next(row for row in ROWS if row.route.endswith("/log"))
    call = await row.make(site)
    for params, content in (
        ({"offset": 0}, b"x"),
        ({"offset": -1, "epoch": 0}, b"x"),
        ({"offset": 2**63, "epoch": 0}, b""),
        ({"offset": 0, "epoch": 0}, b""),
        ({"offset": 0, "epoch": 0}, b"not zstd"),
        ({"offset": 0, "epoch": 0, "more": 1}, b"x"),
    ):
        reply = await site.call(
            "POST", call.path, call.runner, app="runner", params=params, content=content
        )

        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input"), params
