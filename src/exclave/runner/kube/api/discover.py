"""Ask a cluster which kinds it knows."""

from http import HTTPStatus

from exclave.runner.kube.api.discovery import (
    ACCEPT,
    Discovery,
    Resource,
    collect,
    is_aggregated,
    list_versions,
    read_aggregated,
    read_resource_list,
)
from exclave.runner.kube.api.errors import ApiRefused, is_passing
from exclave.runner.kube.api.exchange import ApiRequest, Exchange


async def discover(exchange: Exchange) -> Discovery:
    """Return the kinds of a cluster: two requests, or one for each group of an old server."""
    resources: list[Resource] = []
    unavailable: list[str] = []
    for path in ("/api", "/apis"):
        document = await exchange.call(ApiRequest("GET", path, accept=ACCEPT))
        if is_aggregated(document):
            served, broken = read_aggregated(document)
        else:
            served, broken = await _ask_each(exchange, list_versions(document))
        resources += served
        unavailable += broken
    return collect(resources, unavailable)


async def _ask_each(exchange: Exchange, paths: list[str]) -> tuple[list[Resource], list[str]]:
    resources: list[Resource] = []
    unavailable: list[str] = []
    for path in paths:
        try:
            document = await exchange.call(ApiRequest("GET", path))
        except ApiRefused as refused:
            # The server of an added API may be down; the rest of the cluster works.
            if not is_passing(refused.status) and refused.status.code != HTTPStatus.NOT_FOUND:
                raise
            unavailable.append(path.removeprefix("/apis/").removeprefix("/api/"))
            continue
        resources += read_resource_list(document)
    return resources, unavailable
