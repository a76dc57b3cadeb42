"""A chart of an OCI registry: a version or a constraint is resolved to a digest, once."""

from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import httpx

from exclave.base.digests import digest_bytes
from exclave.base.json_values import list_or_empty, parse_object, text_or_empty
from exclave.client.oci.auth import Authorization
from exclave.client.oci.calls import OciCalls
from exclave.client.oci.documents import MANIFEST, Manifest, read_document
from exclave.client.oci.downloads import pull_blob
from exclave.client.problems import RemoteProblem
from exclave.client.reach import AddressRefused
from exclave.client.transport import build_tls, open_transport
from exclave.runner.builds.charts.downloads import ChartDownloads, make_login
from exclave.runner.builds.charts.repository import FetchedChart
from exclave.runner.builds.charts.versions import ChartVersion, choose_version
from exclave.runner.git.private_networks import explain_refusal
from exclave.runner.helm.packages import CONFIG_TYPE, LAYER_TYPE
from exclave.runner.jobs.context import JobContext
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from exclave.wire.specs import ChartSource

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MOST_PAGES = 100


async def fetch_from_registry(
    downloads: ChartDownloads, context: JobContext, source: ChartSource, target: Path
) -> FetchedChart:
    """Download a chart by the tag of its version, or by the newest tag that fits a constraint."""
    await downloads.check_address(source.url)
    calls = _open(downloads, context, source)
    try:
        tag = await _choose_tag(calls, source)
        path = calls.path(source.chart, f"manifests/{tag}")
        accept = {"Accept": MANIFEST}
        reply = await calls.repeat(lambda: calls.send("GET", path, source.chart, accept))
        digest = digest_bytes(reply.content)
        manifest = read_document(Manifest, reply.content)
        layers = [layer for layer in manifest.layers if layer.mediaType == LAYER_TYPE]
        if manifest.config.mediaType != CONFIG_TYPE or len(layers) != 1:
            _refuse(f"`{source.url}/{source.chart}:{tag}` is not a chart")
        context.log.system(f"{source.chart} {tag} is {digest}")
        await pull_blob(calls, source.chart, layers[0], target)
    except RemoteProblem as problem:
        raise _explain(problem, source) from problem
    except AddressRefused as refused:
        raise explain_refusal(refused) from refused
    finally:
        await calls.close()
    url = f"{source.url.rstrip('/')}/{source.chart}@{digest}"
    return FetchedChart(target, tag.replace("_", "+"), url, digest)


def _open(downloads: ChartDownloads, context: JobContext, source: ChartSource) -> OciCalls:
    parts = urlsplit(source.url)
    scheme = "http" if parts.hostname in _LOOPBACK else "https"
    link = replace(downloads.link, url=f"{scheme}://{parts.netloc}{parts.path}")
    login = make_login(downloads.find_credential(context, source.url))
    authorization = Authorization(None, login, lambda token: context.log.hide([token]))
    transport = open_transport(link, build_tls(link), 4, reach=downloads.reach)
    return OciCalls(link.url, authorization, transport)


async def _choose_tag(calls: OciCalls, source: ChartSource) -> str:
    """Return the tag of a version; a plus sign, which tags cannot have, is an underscore there."""
    exact = ChartVersion.parse(source.version)
    if exact is not None and source.version.count(".") > 1:
        return source.version.replace("+", "_")
    tags = await _list_tags(calls, source.chart)
    try:
        chosen = choose_version((tag.replace("_", "+") for tag in tags), source.version)
    except ValueError as error:
        _refuse(str(error))
    if chosen is None:
        wanted = f" version `{source.version}`" if source.version else " stable version"
        _refuse(f"`{source.url}/{source.chart}` has no{wanted}; there are {', '.join(tags[-8:])}")
    return chosen.replace("+", "_")


async def _list_tags(calls: OciCalls, repository: str) -> list[str]:
    tags: list[str] = []
    path = calls.path(repository, "tags/list?n=1000")
    for _ in range(_MOST_PAGES):
        reply = await calls.send("GET", path, repository)
        listed = parse_object(reply.content, "the list of tags").get("tags")
        tags += [text_or_empty(tag) for tag in list_or_empty(listed)]
        path = reply.links.get("next", {}).get("url", "")
        if not path:
            break
    return tags


def _explain(problem: RemoteProblem, source: ChartSource) -> WorkFailed:
    where = f"`{source.url}/{source.chart}`"
    match problem.status:
        case httpx.codes.NOT_FOUND:
            version = f" {source.version}" if source.version else ""
            return WorkFailed(Reason.SOURCE_INVALID, f"there is no chart {where}{version}")
        case httpx.codes.UNAUTHORIZED | httpx.codes.FORBIDDEN:
            message = (
                f"{where} asks for a name and a password: add them to the build runner's"
                " source-credentials.json, with a prefix of this address"
            )
            return WorkFailed(Reason.ACCESS_DENIED, message)
        case _:
            return WorkFailed(Reason.SOURCE_UNAVAILABLE, f"{where}: {problem.message}")


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SOURCE_INVALID, message)
