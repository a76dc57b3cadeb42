"""One tenant's flood is told to wait; everybody else, and what keeps work alive, goes on."""

from exclave.control.runtime.rates import Limits
from tests.integration.api.cases import make_execution
from tests.integration.api.kit import Site
from tests.integration.api.metrics_kit import scrape

LIMITS = Limits(org=4, caller=2, log_bytes=1000)


async def flood(site: Site, path: str, token: str | None = None) -> list[int]:
    return [(await site.call("GET", path, token)).status_code for _ in range(15)]


async def test_a_token_that_asks_too_much_is_told_when_to_come_back(site: Site) -> None:
    site.deps.rates.limits = LIMITS

    answers = await flood(site, "/v1/whoami")
    refused = await site.call("GET", "/v1/whoami")
    site.clock.advance(int(refused.headers["Retry-After"]))
    later = await site.call("GET", "/v1/whoami")

    assert answers == [200] * 10 + [429] * 5
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert (refused.json()["code"], refused.json()["limit"]) == ("rate_limited", "token")
    assert refused.json()["hint"]
    assert later.status_code == 200
    assert (await scrape(site))["exclave_rate_refusals", ()] == 6


async def test_renewals_and_results_do_not_wait_for_logs(site: Site) -> None:
    running = await make_execution(site)
    site.deps.rates.limits = LIMITS
    token, path = running.enrolled.token, f"/v1/executions/{running.execution}"
    wish = {"boot": 1, "no": 60, "executions": [{"id": running.execution, "epoch": running.epoch}]}
    query = {"epoch": running.epoch, "offset": 0}

    logs = [
        await site.call(
            "POST", f"{path}/log", token, app="runner", params=query, content=b"x" * 999
        )
        for _ in range(13)
    ]
    renewed = await site.call("POST", "/v1/renew", token, app="runner", json=wish)
    ended = await site.call(
        "POST",
        f"{path}/result",
        token,
        app="runner",
        json={"epoch": running.epoch, "outcome": {"state": "failed", "reason": "exit_code"}},
    )

    assert {reply.status_code for reply in logs[:11]} == {422}  # not compressed, but let in
    assert [reply.status_code for reply in logs[11:]] == [429] * 2
    assert logs[-1].json()["limit"] == "log_bytes"
    assert (renewed.status_code, ended.status_code) == (200, 200)
