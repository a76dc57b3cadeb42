"""Checks of the connection to the control plane: DNS, proxy, TCP, TLS, HTTP, clock."""

import asyncio
import ssl
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial

import httpx

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.client.transport import build_tls, explain_cause, name_cause, open_client
from exclave.runner.config import RunnerConfig
from exclave.runner.doctor.findings import Finding, fail, from_problem, ok, warn, within

_WARN_SKEW_S = 10.0
_MOST_SKEW_S = 60.0
_NOT_OURS = "Check that the address is that of the Runner API, and what the proxy lets through."
_SET_CLOCK = "Set this machine's clock: switch on NTP or chrony."


async def check_network(config: RunnerConfig, clock: Clock) -> list[Finding]:
    """Check hop by hop; stop at the first failure, because later hops depend on it."""
    url = httpx.URL(config.runner_url)
    if url.scheme not in {"http", "https"} or not url.host:
        message = f"`{config.runner_url}` is not an address"
        return [fail("address", message, "Give it as https://host or https://host:port.")]
    try:
        tls = build_tls(config.link)
    except Problem as problem:
        return [from_problem("tls", problem)]
    first = httpx.URL(config.proxy) if config.proxy else url
    hop = "proxy" if config.proxy else "tcp"
    findings = [await within("dns", partial(_check_name, first))]
    if findings[-1].state == "ok":
        findings.append(await within(hop, partial(_check_port, first, hop)))
    if findings[-1].state == "ok" and url.scheme == "https" and not config.proxy:
        findings.append(await within("tls", partial(_check_tls, url, tls)))
    if findings[-1].state == "ok":
        findings += await _check_http(config, tls, clock)
    return findings


async def _check_name(url: httpx.URL) -> Finding:
    loop = asyncio.get_running_loop()
    resolved = await loop.getaddrinfo(url.host, _choose_port(url))
    return ok("dns", f"{url.host} is {resolved[0][4][0]}")


async def _check_port(url: httpx.URL, name: str) -> Finding:
    _, writer = await asyncio.open_connection(url.host, _choose_port(url))
    writer.close()
    return ok(name, f"{url.host}:{_choose_port(url)} accepts connections")


async def _check_tls(url: httpx.URL, tls: ssl.SSLContext) -> Finding:
    _, writer = await asyncio.open_connection(
        url.host, _choose_port(url), ssl=tls, server_hostname=url.host
    )
    version = writer.get_extra_info("ssl_object").version()
    writer.close()
    return ok("tls", f"{version}, certificate trusted")


async def _check_http(config: RunnerConfig, tls: ssl.SSLContext, clock: Clock) -> list[Finding]:
    dates: list[datetime] = []

    async def check() -> Finding:
        async with open_client(config.link, tls, connections=1) as client:
            try:
                response = await client.get("/healthz")
            except httpx.HTTPError as error:
                return fail("http", str(error), explain_cause(name_cause(error)))
        if "Date" in response.headers:
            dates.append(parsedate_to_datetime(response.headers["Date"]))
        if not response.is_success:
            return fail("http", f"/healthz answered {response.status_code}", _NOT_OURS)
        return ok("http", "the control plane answers")

    finding = await within("http", check)
    return [finding, *(_check_clock(date, clock) for date in dates)]


def _check_clock(date: datetime, clock: Clock) -> Finding:
    skew = abs((clock.now() - date).total_seconds())
    message = f"{skew:.0f} s away from the control plane's clock"
    if skew > _MOST_SKEW_S:
        return fail("clock", f"{message}: signed work would be refused", _SET_CLOCK)
    return warn("clock", message, _SET_CLOCK) if skew > _WARN_SKEW_S else ok("clock", message)


def _choose_port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)
