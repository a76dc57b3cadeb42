"""Every route of the Control API has exactly one method on the client."""

import inspect
import json
import re
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

import httpx
import pytest
from pydantic import BaseModel

from exclave.base.errors import Problem
from exclave.client.control import ControlClient
from exclave.client.control_http import ControlHttp
from exclave.client.following import BEGIN, LogPosition
from tests.unit.cli.fake_control import TOKEN, URL, FakeControl
from tests.unit.docs.pages import ROOT

FOR_MACHINES = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics")}
"""Routes for load balancers and Prometheus, not for users of the client."""
BY_FOLLOWING = {
    ("GET", "/v1/workflows/{workflow}/stream"),
    ("GET", "/v1/jobs/{job}/logs/stream"),
}
FOLLOWING = {"workflows.follow", "logs.follow"}
"""These read the stream of a route that another method reads once."""


def list_methods(client: ControlClient) -> dict[str, Any]:
    nouns = [name for name, _ in inspect.getmembers(type(client), is_group)]
    groups = {"": client, **{name: getattr(client, name) for name in nouns}}
    return {
        f"{noun}.{name}".lstrip("."): method
        for noun, group in groups.items()
        for name, method in inspect.getmembers(group, inspect.ismethod)
        if name[0] != "_" and name not in {"open", "close"}
    }


def is_group(member: object) -> bool:
    return isinstance(member, cached_property)


def make_argument(hint: Any, file: Path) -> Any:
    if hint is Path:
        return file
    if hint is LogPosition:
        return BEGIN
    if inspect.isclass(hint) and issubclass(hint, BaseModel):
        return hint.model_construct()
    return 1 if hint is int else "x"


async def call(method: Any, file: Path) -> None:
    hints = get_type_hints(inspect.unwrap(method.__func__))
    required = [
        name
        for name, parameter in inspect.signature(method).parameters.items()
        if parameter.default is inspect.Parameter.empty
    ]
    result = method(*(make_argument(hints[name], file) for name in required))
    if inspect.isasyncgen(result):
        await anext(result)
    else:
        await result


async def test_every_route_has_one_method(tmp_path: Path) -> None:
    file = tmp_path / "archive"
    file.write_bytes(b"x")
    sent: list[tuple[str, str]] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        sent.append((request.method, request.url.path))
        return httpx.Response(404, json={"title": "x", "status": 404, "code": "x", "detail": "x"})

    fake = FakeControl()
    http = ControlHttp(
        URL, TOKEN, clock=fake.clock, ids=fake.ids, transport=httpx.MockTransport(refuse)
    )
    async with ControlClient(http) as client:
        for name, method in list_methods(client).items():
            if name not in FOLLOWING:
                with pytest.raises(Problem):
                    await call(method, file)

    document = json.loads((ROOT / "openapi" / "control.json").read_text())
    routes = {(verb.upper(), path) for path, verbs in document["paths"].items() for verb in verbs}
    called = Counter(find_route(request, routes) for request in sent)
    assert called == Counter(routes - FOR_MACHINES - BY_FOLLOWING)


def find_route(request: tuple[str, str], routes: set[tuple[str, str]]) -> tuple[str, str]:
    """Return the route of a request; fixed segments win over parameters."""
    verb, path = request
    matches = [
        (method, template)
        for method, template in routes
        if method == verb and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path)
    ]
    return min(matches, key=lambda route: route[1].count("{"))
