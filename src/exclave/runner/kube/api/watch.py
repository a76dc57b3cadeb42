"""Follow the objects of a collection: a list first, then every change.

A connection that breaks is opened again where it stopped. If the server no longer knows that place
(410), everything is listed again, so a follower never misses a change without being told.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

import httpx

from exclave.base.json_values import JsonObject, object_or_empty, parse_object, text_or_empty
from exclave.runner.kube.api.errors import (
    ApiRefused,
    ApiStatus,
    ClusterUnreachable,
    ReplyTooLarge,
    is_passing,
    read_status,
)
from exclave.runner.kube.api.exchange import ApiRequest, Exchange
from exclave.runner.kube.api.lists import ObjectList

_SERVER_S: Final = 60
"""How long the server keeps a watch open; then it is opened again."""
_SILENCE_S: Final = _SERVER_S + 15.0
"""How long a connection that died without a word can hide what happens."""
_LONGEST_LINE: Final = 16 << 20
_MOST_FAILURES: Final = 10
"""Broken connections without an event in between, after which the cluster is unreachable."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything that is there now; what was known before and is not in it, is gone."""

    objects: list[JsonObject]


@dataclass(frozen=True, slots=True)
class Changed:
    """An object is new or has changed."""

    object: JsonObject


@dataclass(frozen=True, slots=True)
class Removed:
    """An object is gone; this is its last form."""

    object: JsonObject


WatchEvent = Listed | Changed | Removed


class ListObjects(Protocol):
    """Lists the collection that is followed."""

    async def __call__(self) -> ObjectList:
        """Return all objects and the version of the list."""
        ...


class _Expired(Exception):  # noqa: N818 - a turn of the protocol, not an error
    """The server does not know the version any more."""


async def follow(
    exchange: Exchange, request: ApiRequest, list_objects: ListObjects
) -> AsyncGenerator[WatchEvent]:
    """Yield the objects of a collection, then every change; ends only by an exception."""
    version = ""
    failures = 0
    while True:
        try:
            if not version:
                listed = await list_objects()
                version = listed.resource_version
                yield Listed(listed.items)
            async with aclosing(_read_events(exchange, request, version)) as events:
                async for kind, value in events:
                    failures = 0
                    version = _read_version(value) or version
                    if kind in {"ADDED", "MODIFIED"}:
                        yield Changed(value)
                    elif kind == "DELETED":
                        yield Removed(value)
        except _Expired:
            version = ""
        except (ApiRefused, ClusterUnreachable) as problem:
            failures += 1
            if failures > _MOST_FAILURES or not await _may_go_on(exchange, problem):
                raise
            await exchange.pause(exchange.choose_pause(failures, problem))


async def _may_go_on(exchange: Exchange, problem: ApiRefused | ClusterUnreachable) -> bool:
    if isinstance(problem, ClusterUnreachable):
        return bool(problem.facts.get("repeat"))
    if problem.status.code == HTTPStatus.UNAUTHORIZED:
        return await exchange.renew()
    return is_passing(problem.status)


async def _read_events(
    exchange: Exchange, request: ApiRequest, version: str
) -> AsyncGenerator[tuple[str, JsonObject]]:
    params = {
        **request.params,
        "watch": "1",
        "resourceVersion": version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(_SERVER_S),
    }
    opened = ApiRequest("GET", request.path, params)
    try:
        async with exchange.stream(opened, silence_s=_SILENCE_S) as response:
            async for line in _split_lines(response):
                event = parse_object(line, "the event")
                kind, value = text_or_empty(event.get("type")), object_or_empty(event.get("object"))
                if kind == "ERROR":
                    _raise_error(value, opened)
                yield kind, value
    except ApiRefused as refused:
        if refused.status.code == HTTPStatus.GONE:
            raise _Expired from refused
        raise
    except ValueError as error:
        message = f"{opened.label}: a watch sent something that is not an event"
        raise ClusterUnreachable(message, repeat=True) from error


def _raise_error(value: JsonObject, request: ApiRequest) -> None:
    """Raise what an event of the type ERROR carries."""
    code = value.get("code")
    status = read_status(
        code if isinstance(code, int) else HTTPStatus.INTERNAL_SERVER_ERROR,
        json.dumps(value).encode(),
        "",
    )
    # Right after a restart a server sends errors that say nothing; the next list tells the truth.
    if status.code == HTTPStatus.INTERNAL_SERVER_ERROR:
        status = ApiStatus(HTTPStatus.SERVICE_UNAVAILABLE, status.reason, status.message)
    raise ApiRefused(status, request.label)


async def _split_lines(response: httpx.Response) -> AsyncIterator[bytes]:
    rest = bytearray()
    async for chunk in response.aiter_bytes():
        rest += chunk
        *lines, last = rest.split(b"\n") if b"\n" in chunk else [rest]
        for line in lines:
            if line.strip():
                yield bytes(line)
        rest = bytearray(last)
        if len(rest) > _LONGEST_LINE:
            raise ReplyTooLarge(f"an event of a watch is larger than {_LONGEST_LINE >> 20} MiB")


def _read_version(value: JsonObject) -> str:
    return text_or_empty(object_or_empty(value.get("metadata")).get("resourceVersion"))
