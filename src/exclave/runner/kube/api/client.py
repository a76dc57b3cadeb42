"""A client of one cluster: read, apply, create, replace, delete, follow, logs and reviews."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Final, Literal, Self

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.base.json_values import Json, JsonObject, object_or_empty, text_or_empty
from exclave.client.retry import RetryPolicy
from exclave.runner.kube.api.connection import Connection
from exclave.runner.kube.api.discover import discover
from exclave.runner.kube.api.discovery import Discovery, Resource
from exclave.runner.kube.api.errors import ApiRefused
from exclave.runner.kube.api.exchange import PATIENCE, ApiRequest, Exchange
from exclave.runner.kube.api.lists import ObjectList, Selection, list_all
from exclave.runner.kube.api.objects import ObjectId, identify
from exclave.runner.kube.api.watch import WatchEvent, follow

Propagation = Literal["Background", "Foreground", "Orphan"]

_APPLY: Final = "application/apply-patch+yaml"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_ALL: Final = Selection()


@dataclass(frozen=True, slots=True)
class LogSelection:
    """Which part of a container's log is wanted."""

    container: str = ""
    previous: bool = False
    tail_lines: int = 20
    limit_bytes: int = 16_384


@dataclass(frozen=True, slots=True)
class Access:
    """Whether the runner may do something, and the server's reason."""

    allowed: bool
    reason: str


class ClusterClient:
    """A cluster. Open while the block lasts; a `read_only` one refuses whatever would change it."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        randomness: Randomness,
        *,
        read_only: bool = False,
        patience: RetryPolicy = PATIENCE,
    ) -> None:
        self._exchange = Exchange(connection, clock, randomness, patience)
        self._read_only = read_only
        self._discovery: Discovery | None = None
        self._discovering = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._exchange.__aexit__(kind, error, trace)

    async def read_version(self) -> str:
        """Return the version of the server, such as `v1.34.4`."""
        version = await self._exchange.call(ApiRequest("GET", "/version"))
        return text_or_empty(version.get("gitVersion"))

    async def read_time(self) -> datetime:
        """Return the time of the server, by which it dates what happens."""
        return await self._exchange.read_time()

    async def read_cluster_uid(self) -> str:
        """Return what tells this cluster from all others: the uid of `kube-system`."""
        namespace = await self._exchange.call(ApiRequest("GET", "/api/v1/namespaces/kube-system"))
        return text_or_empty(object_or_empty(namespace.get("metadata")).get("uid"))

    async def discover(self) -> Discovery:
        """Return the kinds of the cluster; read once, until `forget_discovery`."""
        async with self._discovering:
            if self._discovery is None:
                self._discovery = await discover(self._exchange)
            return self._discovery

    def forget_discovery(self) -> None:
        """Read the kinds again at their next use, because a definition was added."""
        self._discovery = None

    async def get(self, object_id: ObjectId) -> JsonObject | None:
        """Return an object; None if it does not exist."""
        resource = (await self.discover()).require(object_id)
        path = resource.path(object_id.namespace, object_id.name)
        try:
            return await self._exchange.call(ApiRequest("GET", path))
        except ApiRefused as refused:
            if refused.status.code == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def list_objects(self, resource: Resource, selection: Selection = _ALL) -> ObjectList:
        """Return the selected objects of a kind; none if the cluster no longer serves the kind."""
        try:
            return await list_all(self._exchange, resource, selection)
        except ApiRefused as refused:
            # A definition may be removed between the discovery of its kind and this request.
            if refused.status.code == HTTPStatus.NOT_FOUND:
                return ObjectList([], "")
            raise

    def watch(self, resource: Resource, selection: Selection = _ALL) -> AsyncGenerator[WatchEvent]:
        """Yield the selected objects, then every change; close it when it is no longer needed."""
        request = ApiRequest("GET", resource.path(selection.namespace), selection.write_params())
        listing = partial(list_all, self._exchange, resource, selection)
        return follow(self._exchange, request, listing)

    async def apply(
        self, value: JsonObject, *, manager: str, force: bool = False, dry_run: bool = False
    ) -> JsonObject:
        """Apply an object on the server and return the result; unknown fields are refused."""
        params = {
            "fieldManager": manager,
            "force": "true" if force else "false",
            "fieldValidation": "Strict",
        }
        request = await self._address("PATCH", value, params, dry_run=dry_run)
        return await self._exchange.call(request)

    async def create(self, value: JsonObject, *, manager: str, dry_run: bool = False) -> JsonObject:
        """Create an object; it is never sent twice unless the server asks for it."""
        object_id = identify(value)
        resource = (await self.discover()).require(object_id)
        params = {"fieldManager": manager, "fieldValidation": "Strict"}
        path = resource.path(object_id.namespace)
        return await self._exchange.call(
            self._change("POST", path, params, value, dry_run=dry_run, repeatable=False)
        )

    async def replace(
        self, value: JsonObject, *, manager: str, dry_run: bool = False
    ) -> JsonObject:
        """Replace an object; with `metadata.resourceVersion` only that version of it."""
        params = {"fieldManager": manager, "fieldValidation": "Strict"}
        request = await self._address("PUT", value, params, dry_run=dry_run)
        return await self._exchange.call(request)

    async def delete(
        self,
        object_id: ObjectId,
        *,
        uid: str,
        propagation: Propagation = "Background",
        dry_run: bool = False,
    ) -> bool:
        """Delete the object with this uid; return False if it was gone already.

        An object that was recreated under the same name is not touched: 409.
        """
        resource = (await self.discover()).require(object_id)
        options: dict[str, Json] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {"uid": uid},
        }
        if dry_run:
            options["dryRun"] = ["All"]
        path = resource.path(object_id.namespace, object_id.name)
        try:
            await self._exchange.call(self._change("DELETE", path, {}, options, dry_run=dry_run))
        except ApiRefused as refused:
            if refused.status.code == HTTPStatus.NOT_FOUND:
                return False
            raise
        return True

    async def read_log(
        self,
        namespace: str,
        pod: str,
        wanted: LogSelection = LogSelection(),  # noqa: B008
    ) -> str:
        """Return the last lines of a container's log."""
        params = {
            "container": wanted.container,
            "previous": "true" if wanted.previous else "",
            "tailLines": str(wanted.tail_lines),
            "limitBytes": str(wanted.limit_bytes),
        }
        request = ApiRequest(
            "GET",
            _POD.path(namespace, pod, "log"),
            {name: value for name, value in params.items() if value},
            accept="*/*",
            max_reply=wanted.limit_bytes + 1024,
        )
        return (await self._exchange.fetch(request)).decode(errors="replace")

    async def review_access(
        self, verb: str, resource: Resource, namespace: str = "", name: str = ""
    ) -> Access:
        """Return whether this credential may do something; asking changes nothing."""
        attributes = {
            "verb": verb,
            "group": resource.group,
            "resource": resource.plural,
            "namespace": namespace,
            "name": name,
        }
        body: JsonObject = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        reply = await self._exchange.call(ApiRequest("POST", _REVIEWS, body=body))
        status = object_or_empty(reply.get("status"))
        return Access(status.get("allowed") is True, text_or_empty(status.get("reason")))

    async def _address(
        self, method: str, value: JsonObject, params: Mapping[str, str], *, dry_run: bool
    ) -> ApiRequest:
        object_id = identify(value)
        resource = (await self.discover()).require(object_id)
        path = resource.path(object_id.namespace, object_id.name)
        repeatable = method == "PATCH"
        return self._change(method, path, params, value, dry_run=dry_run, repeatable=repeatable)

    def _change(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        body: JsonObject,
        *,
        dry_run: bool,
        repeatable: bool = True,
    ) -> ApiRequest:
        if self._read_only and not dry_run:
            message = f"a plan changes nothing: {method} {path} was not sent"
            raise RuntimeError(message)
        if dry_run and method != "DELETE":
            params = {**params, "dryRun": "All"}
        content_type = _APPLY if method == "PATCH" else "application/json"
        return ApiRequest(
            method,
            path,
            params,
            body,
            content_type=content_type,
            repeatable=repeatable or dry_run,
        )


_POD: Final = Resource("", "v1", "Pod", "pods", namespaced=True)
