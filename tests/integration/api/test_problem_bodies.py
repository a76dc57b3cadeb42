"""What callers are told when something is wrong, and what every response carries."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from exclave.api import problems
from exclave.api.control import build_control_app
from exclave.base.errors import Kind
from exclave.control.orgs import accounts
from exclave.storage.engine.disk import Disk
from tests.integration.api.kit import MISSING, Site, open_client

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@pytest.fixture
def site(shared_site: Site) -> Site:
    return shared_site


async def test_every_kind_of_problem_has_a_status() -> None:
    assert set(problems.STATUS) == set(Kind)


async def test_a_missing_thing_is_a_problem_with_a_code_and_a_hint(site: Site) -> None:
    reply = await site.call("GET", f"/v1/jobs/job_{MISSING}")

    assert reply.status_code == 404
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json() == {
        "type": "urn:exclave:problem:not_found",
        "title": "Not Found",
        "status": 404,
        "code": "not_found",
        "detail": "there is no such job",
        "hint": "Check the id, and that your token belongs to the right org.",
    }


async def test_facts_of_a_problem_are_told(site: Site) -> None:
    reply = await site.call(
        "POST", f"/v1/installs/{site.queue}/lanes/kitchen/release", json={"reason": "looked"}
    )

    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input")
    assert reply.json()["lane"] == "kitchen"


@pytest.mark.parametrize("app", ["control", "runner"])
async def test_an_unknown_route_is_a_problem(site: Site, app: str) -> None:
    for path in ("/", "/v1", "/v1/nothing", "/v1/jobs/", "/docs", "/v2/whoami", "/v1//whoami"):
        reply = await site.call("GET", path, app=app)

        assert (reply.status_code, reply.json()["code"]) == (404, "no_such_route"), path


@pytest.mark.parametrize("app", ["control", "runner"])
async def test_every_response_has_a_request_id_of_its_own_and_safe_headers(
    site: Site, app: str
) -> None:
    replies = [
        await site.call(method, path, app=app)
        for method, path in (
            ("GET", "/healthz"),
            ("GET", "/v1/nothing"),
            ("PATCH", "/healthz"),
            ("POST", "/v1/poll"),
            ("POST", "/v1/workflows"),
        )
    ]

    for reply in replies:
        assert {name: reply.headers[name] for name in HEADERS} == HEADERS
        assert "access-control-allow-origin" not in reply.headers
        assert "server" not in reply.headers
    assert len({reply.headers["x-request-id"] for reply in replies}) == len(replies)


async def test_a_browser_of_another_origin_is_told_nothing(site: Site) -> None:
    asks = {"Origin": "https://evil.test", "Access-Control-Request-Method": "POST"}

    reply = await site.call("OPTIONS", "/v1/workflows", headers=asks)

    assert reply.status_code == 405
    assert not [name for name in reply.headers if name.startswith("access-control")]


async def test_a_bug_shows_no_traceback_but_is_logged_with_the_request_id(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: Any) -> None:
        raise RuntimeError("secret inner workings")

    monkeypatch.setattr(accounts, "who_am_i", fail)

    with caplog.at_level(logging.ERROR):
        reply = await site.call("GET", "/v1/whoami")

    request_id = reply.headers["x-request-id"]
    assert (reply.status_code, reply.json()["code"]) == (500, "bug")
    assert reply.json()["request_id"] == request_id
    assert "secret inner workings" not in reply.text
    assert "Traceback" not in reply.text
    logged = next(r for r in caplog.records if r.getMessage() == "request_failed")
    assert logged.facts["request"] == request_id  # type: ignore[attr-defined]
    assert logged.exc_info is not None


async def test_a_database_that_does_not_answer_is_no_bug(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: Any) -> None:
        raise OperationalError("SELECT 1", {}, Exception("password of the database"))

    monkeypatch.setattr(site.deps.db._reading, "_begin", fail)
    monkeypatch.setattr(site.deps.db._writing, "_begin", fail)
    monkeypatch.setattr(site.deps.health, "checked_at", None)
    monkeypatch.setattr(site.deps.health, "problem", None)
    for app, path in (("control", "/healthz"), ("runner", "/healthz"), ("control", "/v1/whoami")):
        reply = await site.call("GET", path, app=app)

        assert (reply.status_code, reply.json()["code"]) == (503, "unavailable")
        assert reply.headers["retry-after"] == "1"
        assert "password" not in reply.text


async def test_the_access_log_names_who_and_what_but_no_secret(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="exclave"):
        reply = await site.call("GET", f"/v1/logs/search?q=hush&queue_id={site.queue}")
        await site.call("GET", "/healthz")

    lines = [r.facts for r in caplog.records if r.getMessage() == "request_answered"]  # type: ignore[attr-defined]
    assert len(lines) == 1
    assert lines[0] | {"ms": 0} == {
        "request": reply.headers["x-request-id"],
        "api": "control",
        "method": "GET",
        "route": "/v1/logs/search",
        "status": 200,
        "ms": 0,
        "org": site.admin.user.org,
        "account": site.admin.user.account,
        "token": site.admin.user.token,
    }
    assert site.admin.token not in caplog.text
    assert "hush" not in caplog.text


@pytest.mark.parametrize("file", ["local.py", "local.pyx", "local.py/", ""])
async def test_the_code_of_a_stack_is_never_logged(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    async def fail(*_: object) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr("exclave.control.stacks.stacks.fetch_file", fail)
    with caplog.at_level(logging.INFO, logger="exclave"):
        await site.call("GET", f"/v1/stacks/xcs_secretcode/{file}", "", app="runner")

    told = [str(vars(record)) for record in caplog.records]
    assert told
    assert not [line for line in told if "secretcode" in line]


@pytest.mark.parametrize(
    ("app", "path", "limit", "otherwise"),
    [
        ("control", "/v1/workflows", 1 << 20, 422),
        ("control", "/v1/installs", 1 << 20, 422),
        ("control", "/v1/tokens", 1 << 20, 422),
        ("runner", "/v1/enrol", 1 << 20, 422),
        ("runner", "/v1/stack/report", 96 << 10, 422),
        ("runner", "/v1/poll", 64 << 10, 422),
        ("runner", "/v1/renew", 64 << 10, 422),
        ("runner", f"/v1/executions/exe_{MISSING}/log?offset=0&epoch=0", 4 << 20, 404),
        ("runner", f"/v1/executions/exe_{MISSING}/result", 2 << 20, 422),
        ("runner", f"/v1/executions/exe_{MISSING}/start", 64 << 10, 422),
    ],
)
async def test_a_body_beyond_its_limit_is_refused_announced_or_not(
    site: Site, app: str, path: str, limit: int, otherwise: int
) -> None:
    async def drip() -> Any:
        for _ in range(limit // 65_536 + 1):
            yield b" " * 65_536

    json = {"Content-Type": "application/json"}
    announced = await site.call("POST", path, app=app, headers=json, content=b" " * (limit + 1))
    dripped = await site.call("POST", path, app=app, headers=json, content=drip())
    fitting = await site.call("POST", path, app=app, headers=json, content=b" " * limit)

    for reply in (announced, dripped):
        assert (reply.status_code, reply.json()["code"]) == (413, "too_large")
    assert fitting.status_code == otherwise


async def test_large_requests_are_refused_when_the_disk_is_nearly_full(
    site: Site, tmp_path: Path
) -> None:
    full = replace(site.deps, disk=Disk(tmp_path, site.deps.clock, 1 << 60))
    small = {"name": "a", "queue_id": site.queue, "steps": [{"name": "x", "job": {"kind": "noop"}}]}
    large = small | {"pad": "x" * 100_000}
    headers = {"Authorization": f"Bearer {site.admin.token}"}

    async with open_client(build_control_app(full)) as client:
        refused = await client.post("/v1/workflows", json=large, headers=headers)
        accepted = await client.post("/v1/workflows", json=small, headers=headers)

    assert (refused.status_code, refused.json()["code"]) == (507, "disk_full")
    assert accepted.status_code == 202
