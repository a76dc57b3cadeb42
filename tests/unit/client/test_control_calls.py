import inspect
import json
import re
from pathlib import Path

import httpx
import pytest

from exclave.base.errors import InvalidInput
from exclave.client import control
from exclave.client.control import ControlClient
from exclave.client.control_http import ControlCalls
from exclave.client.pages import collect, iterate
from exclave.client.problems import RemoteProblem, UnexpectedReply, Unreachable
from exclave.wire.installs import NewInstall
from tests.unit.cli import samples
from tests.unit.cli.fake_control import INS, TOKEN, FakeControl

ROUTES = """
GET /v1/whoami · POST /v1/orgs · GET /v1/org · GET /v1/org/usage · GET /v1/org/four-eyes · PUT /v1/org/four-eyes
GET /v1/tokens · POST /v1/tokens · DELETE /v1/tokens/{} · PUT /v1/tokens/{}/confirmed
GET /v1/installs · POST /v1/installs · GET /v1/installs/{} · POST /v1/installs/{}/lanes/{}/release
GET /v1/installs/{}/stack · POST /v1/installs/{}/stack · POST /v1/enrolments · GET /v1/runners · GET /v1/runners/{} · POST /v1/runners/{}/revoke
POST /v1/workflows · GET /v1/workflows · GET /v1/workflows/{} · GET /v1/workflows/{}/stream
POST /v1/workflows/{}/cancel · PUT /v1/workflows/{}/approve-all · POST /v1/workflows/{}/steps/{}/{}
GET /v1/jobs · GET /v1/jobs/{} · POST /v1/jobs/{}/cancel · POST /v1/jobs/{}/declare-lost · GET /v1/jobs/{}/logs
GET /v1/jobs/{}/logs/stream · GET /v1/jobs/{}/logs/search · GET /v1/logs/search · GET /v1/audit
"""


def test_each_route_of_the_api_has_its_place_in_the_client() -> None:
    folder = Path(inspect.getfile(control)).parent
    text = "".join(
        each.read_text() for each in (*sorted(folder.glob("control*.py")), folder / "following.py")
    )
    used = {re.sub(r"\{[^}]*\}", "{}", found) for found in re.findall(r'f?"(/v1/[^"]*)"', text)}
    wanted = {each.split()[1] for each in re.split(r"[·\n]", ROUTES) if each.strip()}

    assert used == wanted - {"/v1/workflows/{}/stream", "/v1/jobs/{}/logs/stream"}
    assert "/logs/stream" in text


async def test_a_hiccup_is_bridged_with_the_same_key(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.add("POST", "/v1/installs", httpx.ReadError("cut"))
    fake.add("POST", "/v1/installs", httpx.Response(503, text="starting"))
    fake.answer("POST", "/v1/installs", samples.install())

    made = await client.create_install(NewInstall(name="customer-one"))

    keys = {each.headers["Idempotency-Key"] for each in fake.requests}
    assert (made.id, len(fake.requests), len(keys)) == (INS, 3, 1)
    assert all(json.loads(each.content)["name"] == "customer-one" for each in fake.requests)


async def test_two_posts_have_two_keys(client: ControlClient, fake: FakeControl) -> None:
    fake.answer("POST", "/v1/installs", samples.install())

    await client.create_install(NewInstall(name="customer-one"))
    await client.create_install(NewInstall(name="customer-one"))

    assert len({each.headers["Idempotency-Key"] for each in fake.requests}) == 2


async def test_an_outage_is_told_after_a_few_seconds(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.add("GET", "/v1/org", httpx.ConnectTimeout("slow"))

    with pytest.raises(Unreachable, match=r"cannot reach http://control\.test"):
        await client.get_org()

    assert len(fake.requests) > 2
    assert sum(fake.clock.slept) <= 4


async def test_the_server_may_ask_for_a_longer_pause(
    client: ControlClient, fake: FakeControl
) -> None:
    body = {"title": "x", "status": 429, "code": "too_many", "detail": "slow down"}
    fake.add("GET", "/v1/org", httpx.Response(429, json=body, headers={"Retry-After": "3"}))
    fake.answer("GET", "/v1/org", samples.org())

    await client.get_org()

    assert fake.clock.slept == [3.0]


async def test_a_refusal_is_not_repeated(client: ControlClient, fake: FakeControl) -> None:
    fake.refuse("GET", "/v1/org", 403, "forbidden", "not for you", "Ask an admin.")

    with pytest.raises(RemoteProblem) as caught:
        await client.get_org()

    assert len(fake.requests) == 1
    assert (caught.value.status, caught.value.code, caught.value.advice) == (
        403,
        "forbidden",
        "Ask an admin.",
    )


async def test_a_redirect_is_not_followed_with_the_token(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.add("GET", "/v1/org", httpx.Response(302, headers={"Location": "https://elsewhere.test"}))

    with pytest.raises(UnexpectedReply):
        await client.get_org()

    assert len(fake.requests) == 1


async def test_fields_of_a_newer_server_are_ignored(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.answer("GET", "/v1/org", samples.org() | {"colour": "blue"})

    assert (await client.get_org()).name == "acme"


async def test_names_are_one_part_of_the_path(client: ControlClient, fake: FakeControl) -> None:
    fake.answer("GET", "/v1/installs/..%2F..%2Forg%3Fx", samples.install())

    await client.get_install("../../org?x")

    assert len(fake.requests) == 1


async def test_pages_are_walked_by_their_cursors(client: ControlClient, fake: FakeControl) -> None:
    fake.answer("GET", "/v1/audit", samples.page(samples.audit(), samples.audit(), following="c1"))
    fake.answer("GET", "/v1/audit", samples.page(samples.audit()))

    found = [entry async for entry in iterate(client.list_audit)]

    assert len(found) == 3
    assert [each.url.params.get("cursor") for each in fake.requests] == [None, "c1"]


async def test_collecting_stops_at_the_limit_and_keeps_the_cursor(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.answer("GET", "/v1/audit", samples.page(samples.audit(), samples.audit(), following="c1"))

    page = await collect(client.list_audit, limit=2, cursor="c0")

    assert (len(page.items), page.next) == (2, "c1")
    assert dict(fake.requests[0].url.params) == {"cursor": "c0", "limit": "2"}


@pytest.mark.parametrize("url", ["control.test", "ftp://control.test", "http://", "http://[::", ""])
def test_a_wrong_address_is_refused_before_any_call(url: str, fake: FakeControl) -> None:
    with pytest.raises(InvalidInput, match="is not an address"):
        ControlCalls(url, TOKEN, clock=fake.clock, ids=fake.ids)
