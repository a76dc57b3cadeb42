"""Idempotency-Key: a request that is sent twice is carried out once."""

import pytest
from sqlalchemy import select, update

from exclave.base.digests import digest_json
from exclave.storage.tables.identity import idempotency
from exclave.wire.workflows import NewWorkflow
from tests.integration.api.cases import make_flow
from tests.integration.api.kit import Site, make_admin

KEY = {"Idempotency-Key": "try-1"}


def wish(site: Site, name: str = "w") -> dict[str, object]:
    steps = [{"name": "one", "job": {"kind": "noop"}}]
    return {"name": name, "queue_id": site.queue, "steps": steps}


async def count(site: Site, path: str) -> int:
    return len((await site.call("GET", path)).json()["items"])


async def test_the_same_request_is_answered_alike_and_done_once(site: Site) -> None:
    first = await site.call("POST", "/v1/workflows", headers=KEY, json=wish(site))
    again = await site.call("POST", "/v1/workflows", headers=KEY, json=wish(site))

    assert first.status_code == again.status_code == 202
    assert first.content == again.content
    assert await count(site, "/v1/workflows") == 1


async def test_without_a_key_each_request_counts(site: Site) -> None:
    for _ in range(2):
        await site.call("POST", "/v1/workflows", json=wish(site))

    assert await count(site, "/v1/workflows") == 2


async def test_a_key_belongs_to_one_request(site: Site) -> None:
    await site.call("POST", "/v1/workflows", headers=KEY, json=wish(site))

    other_body = await site.call("POST", "/v1/workflows", headers=KEY, json=wish(site, "other"))
    other_path = await site.call("POST", "/v1/installs", headers=KEY, json={"name": "new"})

    for reply in (other_body, other_path):
        assert (reply.status_code, reply.json()["code"]) == (409, "idempotency_key_reused")
    assert await count(site, "/v1/workflows") == 1


async def test_a_key_belongs_to_one_account(site: Site) -> None:
    rival = await make_admin(site.deps, "rival")
    body = {"name": "same"}

    mine = await site.call("POST", "/v1/installs", headers=KEY, json=body)
    theirs = await site.call("POST", "/v1/installs", rival.token, headers=KEY, json=body)

    assert mine.status_code == theirs.status_code == 201
    assert mine.json()["id"] != theirs.json()["id"]


async def test_a_refused_request_does_not_spend_its_key(site: Site) -> None:
    missing = {**wish(site), "queue_id": "ins_" + "0" * 26}
    refused = await site.call("POST", "/v1/workflows", headers=KEY, json=missing)

    accepted = await site.call("POST", "/v1/workflows", headers=KEY, json=wish(site))

    assert (refused.status_code, accepted.status_code) == (404, 202)


async def test_steering_twice_under_a_key_is_fine_and_without_one_is_judged_anew(
    site: Site,
) -> None:
    flow = await make_flow(site)
    path = f"/v1/workflows/{flow.id}/steps/wait/event"
    body = {"outputs": {"n": 1}}

    replies = [await site.call("POST", path, headers=KEY, json=body) for _ in range(2)]

    assert [reply.status_code for reply in replies] == [202, 202]
    assert replies[0].content == replies[1].content


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/orgs", {"name": "fresh"}),
        ("/v1/tokens", {"name": "t", "account": "a", "grants": [{"role": "viewer"}]}),
        ("/v1/enrolments", {"queue_id": "{queue}"}),
    ],
)
async def test_a_reply_with_a_secret_is_given_once_and_kept_nowhere(
    site: Site, path: str, body: dict[str, object]
) -> None:
    body = {key: site.queue if value == "{queue}" else value for key, value in body.items()}

    first = await site.call("POST", path, headers=KEY, json=body)
    again = await site.call("POST", path, headers=KEY, json=body)

    assert first.status_code == 201
    assert (again.status_code, again.json()["code"]) == (409, "already_done")
    rows = await site.deps.db.read(lambda tx: tx.all(select(idempotency)))
    assert len(rows) == 1
    assert first.json()["token"] not in str(rows)


@pytest.mark.parametrize("key", ["", "with space", "x" * 129, "\u00e9"])
async def test_a_malformed_key_is_refused(site: Site, key: str) -> None:
    reply = await site.call(
        "POST",
        "/v1/workflows",
        headers={"Idempotency-Key": key.encode("latin-1")},
        json=wish(site),
    )

    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input")
    assert await count(site, "/v1/workflows") == 0


async def test_the_stored_digest_of_a_request_cannot_be_guessed_without_the_seal_key(
    site: Site,
) -> None:
    await site.call("POST", "/v1/workflows", headers=KEY, json=wish(site))

    stored = await site.deps.db.read(lambda tx: tx.all(select(idempotency.c.request)))

    asked = ["POST", "/v1/workflows", wish(site)]
    assert digest_json([site.admin.user.token, asked]) not in {row.request for row in stored}
    assert all(not row.request.startswith("sha256:") for row in stored)


async def test_a_request_that_an_older_version_stored_is_still_known(site: Site) -> None:
    first = await site.call("POST", "/v1/workflows", headers=KEY, json=wish(site))
    body = NewWorkflow.model_validate(wish(site)).model_dump(mode="json")
    plain = digest_json([site.admin.user.token, ["POST", "/v1/workflows", body]])
    await site.deps.db.write(lambda tx: tx.run(update(idempotency).values(request=plain)).close())

    again = await site.call("POST", "/v1/workflows", headers=KEY, json=wish(site))

    assert again.content == first.content
