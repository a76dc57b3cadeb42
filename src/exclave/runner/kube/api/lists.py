"""Collections of objects, read page by page."""

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.runner.kube.api.discovery import Resource
from exclave.runner.kube.api.errors import ApiRefused, ReplyTooLarge
from exclave.runner.kube.api.exchange import ApiRequest, Exchange

MOST_LISTED: Final = 50_000
_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a collection are meant; empty fields select everything."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def write_params(self) -> dict[str, str]:
        """Return the selectors as query parameters."""
        params = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in params.items() if value}


@dataclass(frozen=True, slots=True)
class ObjectList:
    """The objects of a collection, and the version from which changes can be followed."""

    items: list[JsonObject]
    resource_version: str


async def list_all(exchange: Exchange, resource: Resource, selection: Selection) -> ObjectList:
    """Return all selected objects; a list that changed too much while it was read starts again."""
    request = ApiRequest("GET", resource.path(selection.namespace), selection.write_params())
    try:
        return await _read_pages(exchange, resource, request)
    except ApiRefused as refused:
        if refused.status.code != HTTPStatus.GONE:
            raise
        return await _read_pages(exchange, resource, request)


async def _read_pages(exchange: Exchange, resource: Resource, request: ApiRequest) -> ObjectList:
    items: list[JsonObject] = []
    params = {**request.params, "limit": str(_PAGE)}
    while True:
        page = await exchange.call(replace(request, params=params))
        items += [
            _add_kind(object_or_empty(item), resource) for item in list_or_empty(page.get("items"))
        ]
        if len(items) > MOST_LISTED:
            raise ReplyTooLarge(f"{request.label}: more than {MOST_LISTED} objects")
        metadata = object_or_empty(page.get("metadata"))
        more = text_or_empty(metadata.get("continue"))
        if not more:
            return ObjectList(items, text_or_empty(metadata.get("resourceVersion")))
        params["continue"] = more


def _add_kind(item: JsonObject, resource: Resource) -> JsonObject:
    """Return an item of a list with `apiVersion` and `kind`, which lists leave out."""
    api_version = f"{resource.group}/{resource.version}".lstrip("/")
    return {"apiVersion": api_version, "kind": resource.kind, **item}
