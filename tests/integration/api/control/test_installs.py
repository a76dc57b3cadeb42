"""Routes of installs over HTTP: bad input, repeated requests, filters."""

from typing import Any

import pytest

from tests.integration.api.kit import Site
from tests.support.installs import make_app, make_app_install

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def site(shared_site: Site) -> Site:
    return shared_site


async def make_one(site: Site) -> tuple[str, str]:
    name = site.deps.ids.new("x").replace("_", "-")
    app = await make_app(site.deps, site.admin.user, name)
    made = await make_app_install(site.deps, site.admin.user, app, name, provision=False)
    return name, made.id


async def test_an_install_is_created_once_however_often_it_is_asked_for(site: Site) -> None:
    name = site.deps.ids.new("x").replace("_", "-")
    await make_app(site.deps, site.admin.user, name)
    body = {"name": name, "app": name, "inputs": {"domain": "a.test"}}
    headers = {"Idempotency-Key": "idk_" + "7" * 26}

    replies = [
        await site.call("POST", "/v1/installs", json=body, headers=headers) for _ in range(2)
    ]

    assert [reply.status_code for reply in replies] == [201, 201]
    assert replies[0].json() == replies[1].json()
    assert replies[0].json()["workflow_id"].startswith("wfl_")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"name": "a b"}, "invalid_input"),
        ({"name": "ok", "app": "../etc"}, "invalid_input"),
        ({"name": "ok", "inputs": {"a": 1}}, "invalid_input"),
        ({"name": "ok", "inputs": {"a": "x" * 70_000}}, "invalid_input"),
        ({"name": "ok", "unknown": True}, "invalid_input"),
        ({"name": "ok", "labels": {"UPPER": "x"}}, "invalid_input"),
        ({"name": "ok", "app": "{app}", "inputs": {"nope": "x"}}, "bad_inputs"),
    ],
)
async def test_a_bad_install_is_refused(site: Site, body: dict[str, Any], code: str) -> None:
    name, _ = await make_one(site)
    sent = {key: name if value == "{app}" else value for key, value in body.items()}

    reply = await site.call("POST", "/v1/installs", json=sent)

    assert (reply.status_code, reply.json()["code"]) == (422, code)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "inputs", {"values": {"replicas": 3}}),
        ("POST", "inputs", {"value": {}}),
        ("POST", "inputs", {"values": {"replicas": "x\u0000"}}),
        ("POST", "upgrade", {"config": 0}),
        ("POST", "upgrade", {"config": "newest"}),
        ("POST", "workflows", {"kind": "explode"}),
        ("POST", "workflows", {"kind": "input_update"}),
        ("POST", "workflows", {"kind": "deploy", "components": ["A B"]}),
        ("PUT", "labels", {"labels": {"a": None}}),
        ("PUT", "managed-by", {"managed_by": "nobody"}),
        ("GET", "state?version=0", None),
        ("GET", "state?at=yesterday", None),
        ("GET", "state?at=2030-01-01T00:00:00", None),
        ("GET", "inputs?version=99999999999999", None),
    ],
)
async def test_bad_requests_change_nothing(
    site: Site, method: str, path: str, body: dict[str, Any] | None
) -> None:
    _, install = await make_one(site)
    before = (await site.call("GET", f"/v1/installs/{install}")).json()

    reply = await site.call(method, f"/v1/installs/{install}/{path}", json=body)

    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input"), reply.text
    assert (await site.call("GET", f"/v1/installs/{install}")).json() == before


@pytest.mark.parametrize(
    "query",
    ["label=novalue", "label=A=b", "state=UP", "name=a%20b", "app=%00", "cursor=x", "odd=1"],
)
async def test_an_odd_filter_is_an_error_and_not_ignored(site: Site, query: str) -> None:
    reply = await site.call("GET", f"/v1/installs?{query}")

    assert reply.status_code == 422


async def test_filters_narrow_the_list(site: Site) -> None:
    name, install = await make_one(site)
    await site.call("PUT", f"/v1/installs/{install}/labels", json={"labels": {"a": "x=y", "b": ""}})

    for query in (f"app={name}", f"name={name}", "label=a=x%3Dy&label=b=", f"app={name}&state=new"):
        found = (await site.call("GET", f"/v1/installs?{query}")).json()["items"]
        assert [each["id"] for each in found] == [install], query


async def test_a_deleted_install_is_gone(site: Site) -> None:
    name, install = await make_one(site)

    assert (await site.call("DELETE", f"/v1/installs/{install}?forget=x")).status_code == 422
    assert (await site.call("DELETE", f"/v1/installs/{install}")).status_code == 204
    assert (await site.call("DELETE", f"/v1/installs/{install}")).status_code == 404
    assert (await site.call("GET", f"/v1/installs?name={name}")).json()["items"] == []


async def test_a_sensitive_value_leaves_by_no_route(site: Site) -> None:
    _, install = await make_one(site)
    body = {"values": {"api_key": "hunter2-and-more"}}

    replies = [await site.call("POST", f"/v1/installs/{install}/inputs", json=body)]
    for path in ("", "/inputs", "/state", "/readme"):
        replies.append(await site.call("GET", f"/v1/installs/{install}{path}"))
    replies.append(await site.call("GET", "/v1/audit"))

    assert {reply.is_success for reply in replies} == {True}
    assert all("hunter2" not in reply.text for reply in replies)
