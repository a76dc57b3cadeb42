import json

import httpx
import pytest

from exclave.base.errors import InvalidInput
from exclave.client.control import ControlClient
from exclave.client.control_http import ControlHttp
from exclave.client.pages import collect, iterate
from exclave.client.problems import RemoteProblem, UnexpectedReply, Unreachable
from exclave.wire.installs import NewInstall
from tests.unit.cli import samples
from tests.unit.cli.fake_control import INS, TOKEN, FakeControl


async def test_a_hiccup_is_bridged_with_the_same_key(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.add("POST", "/v1/installs", httpx.ReadError("cut"))
    fake.add("POST", "/v1/installs", httpx.Response(503, text="starting"))
    fake.answer("POST", "/v1/installs", samples.install())

    made = await client.installs.create(NewInstall(name="customer-one"))

    keys = {each.headers["Idempotency-Key"] for each in fake.requests}
    assert (made.id, len(fake.requests), len(keys)) == (INS, 3, 1)
    assert all(json.loads(each.content)["name"] == "customer-one" for each in fake.requests)


async def test_two_posts_have_two_keys(client: ControlClient, fake: FakeControl) -> None:
    fake.answer("POST", "/v1/installs", samples.install())

    await client.installs.create(NewInstall(name="customer-one"))
    await client.installs.create(NewInstall(name="customer-one"))

    assert len({each.headers["Idempotency-Key"] for each in fake.requests}) == 2


async def test_an_outage_is_told_after_a_few_seconds(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.add("GET", "/v1/org", httpx.ConnectTimeout("slow"))

    with pytest.raises(Unreachable, match=r"cannot reach http://control\.test"):
        await client.orgs.get()

    assert len(fake.requests) > 2
    assert sum(fake.clock.slept) <= 4


async def test_the_server_may_ask_for_a_longer_pause(
    client: ControlClient, fake: FakeControl
) -> None:
    body = {"title": "x", "status": 429, "code": "too_many", "detail": "slow down"}
    fake.add("GET", "/v1/org", httpx.Response(429, json=body, headers={"Retry-After": "3"}))
    fake.answer("GET", "/v1/org", samples.org())

    await client.orgs.get()

    assert fake.clock.slept == [3.0]


async def test_a_refusal_is_not_repeated(client: ControlClient, fake: FakeControl) -> None:
    fake.refuse("GET", "/v1/org", 403, "forbidden", "not for you", "Ask an admin.")

    with pytest.raises(RemoteProblem) as caught:
        await client.orgs.get()

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
        await client.orgs.get()

    assert len(fake.requests) == 1


async def test_fields_of_a_newer_server_are_ignored(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.answer("GET", "/v1/org", samples.org() | {"colour": "blue"})

    assert (await client.orgs.get()).name == "acme"


async def test_names_are_one_part_of_the_path(client: ControlClient, fake: FakeControl) -> None:
    fake.answer("GET", "/v1/installs/..%2F..%2Forg%3Fx", samples.install())

    await client.installs.get("../../org?x")

    assert len(fake.requests) == 1


async def test_pages_are_walked_by_their_cursors(client: ControlClient, fake: FakeControl) -> None:
    fake.answer("GET", "/v1/audit", samples.page(samples.audit(), samples.audit(), following="c1"))
    fake.answer("GET", "/v1/audit", samples.page(samples.audit()))

    found = [entry async for entry in iterate(client.audit.list)]

    assert len(found) == 3
    assert [each.url.params.get("cursor") for each in fake.requests] == [None, "c1"]


async def test_collecting_stops_at_the_limit_and_keeps_the_cursor(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.answer("GET", "/v1/audit", samples.page(samples.audit(), samples.audit(), following="c1"))

    page = await collect(client.audit.list, limit=2, cursor="c0")

    assert (len(page.items), page.next) == (2, "c1")
    assert dict(fake.requests[0].url.params) == {"cursor": "c0", "limit": "2"}


@pytest.mark.parametrize("url", ["control.test", "ftp://control.test", "http://", "http://[::", ""])
def test_a_wrong_address_is_refused_before_any_call(url: str, fake: FakeControl) -> None:
    with pytest.raises(InvalidInput, match="is not a URL"):
        ControlHttp(url, TOKEN, clock=fake.clock, ids=fake.ids)
