"""Figures for operators: complete, of this process only, and without names of tenants."""

from exclave import __version__
from exclave.api.control import build_control_app
from exclave.api.metrics import Metrics
from exclave.api.runner import build_runner_app
from tests.integration.api.cases import make_execution, make_flow
from tests.integration.api.kit import Site, open_client
from tests.integration.api.metrics_kit import scrape


async def test_the_state_of_the_instance_is_read_at_each_scrape(site: Site) -> None:
    before = await scrape(site)
    await make_flow(site)
    running = await make_execution(site)
    wish = {
        "boot": 1,
        "no": 50,
        "executions": [{"id": running.execution, "epoch": running.epoch}],
        "stats": {"log_backlog_bytes": 7, "results_waiting": 2, "envelopes_refused": 1},
    }
    renewed = await site.call("POST", "/v1/renew", running.enrolled.token, app="runner", json=wish)
    assert renewed.status_code == 200

    after = await scrape(site)

    assert before["exclave_workflows_running", ()] == 0
    assert after["exclave_workflows_running", ()] == 2
    assert after["exclave_jobs", (("state", "queued"),)] == 1
    assert after["exclave_jobs", (("state", "running"),)] == 1
    assert after["exclave_jobs", (("state", "offered"),)] == 0
    assert after["exclave_runners", (("presence", "up"),)] == 1
    assert after["exclave_runners", (("presence", "new"),)] == 1
    assert after["exclave_runners", (("presence", "lost"),)] == 0
    assert after["exclave_polls_open", ()] == 0
    assert after["exclave_runner_log_backlog_bytes", ()] == 7
    assert after["exclave_runner_results_waiting", ()] == 2
    assert after["exclave_runner_envelopes_refused", ()] == 1
    assert after["exclave_build_info", (("version", __version__),)] == 1


async def test_a_poll_tells_what_a_renewal_tells(site: Site) -> None:
    running = await make_execution(site)
    wish = {
        "boot": 1,
        "no": 50,
        "nonce": "nonce-of-a-poll-50",
        "free": 0,
        "version": "1",
        "executions": [running.execution],
        "max_hold_s": 0,
        "protocol": "1.1",
        "capabilities": [],
    }

    for no, stats in ((50, {"stats": {"results_waiting": 3}}), (51, {})):
        asked = {**wish, "no": no, **stats}
        reply = await site.call(
            "POST", "/v1/poll", running.enrolled.token, app="runner", json=asked
        )
        assert reply.status_code == 200

    assert (await scrape(site))["exclave_runner_results_waiting", ()] == 3


async def test_requests_are_counted_by_template_and_not_by_path(site: Site) -> None:
    for path in ("/v1/jobs/a", "/v1/jobs/b", "/wp-login.php", "/v1/jobs/c/d/e"):
        await site.call("GET", path)
    await site.call("BREW", "/v1/jobs/a")

    found = await scrape(site)

    name = "exclave_http_requests_total"
    counted = {
        (labels["method"], labels["route"], labels["status"]): value
        for (metric, pairs), value in found.items()
        if metric == name and (labels := dict(pairs))
    }
    assert counted == {
        ("GET", "/v1/jobs/{job}", "404"): 2,
        ("GET", "unmatched", "404"): 2,
        ("other", "/v1/jobs/{job}", "405"): 1,
    }


async def test_both_apis_may_share_their_figures(site: Site) -> None:
    shared = Metrics()
    control = open_client(build_control_app(site.deps, shared))
    runner = open_client(build_runner_app(site.deps, shared))

    await runner.get("/healthz")
    text = (await control.get("/metrics")).text

    assert (
        'exclave_http_requests_total{api="runner",method="GET",route="/healthz",status="200"} 1.0'
        in text
    )


async def test_figures_name_no_tenant(site: Site) -> None:
    await make_flow(site)
    await site.call("GET", f"/v1/installs/{site.queue}")

    text = (await site.call("GET", "/metrics", "")).text

    assert site.queue not in text
    assert site.admin.user.org not in text


async def test_health_tells_the_version_and_asks_the_database(site: Site) -> None:
    for app in ("control", "runner"):
        reply = await site.call("GET", "/healthz", "", app=app)

        assert reply.json() == {"status": "ok", "version": __version__}
