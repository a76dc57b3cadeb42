"""A chart of a chart repository behind http: chosen in its index, downloaded, compared."""

import asyncio
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urljoin

from exclave.base.json_values import (
    Json,
    list_or_empty,
    object_or_empty,
    text_or_empty,
)
from exclave.runner.builds.charts.downloads import ChartDownloads
from exclave.runner.builds.charts.versions import choose_version
from exclave.runner.jobs.context import JobContext
from exclave.runner.kube.api.yaml_reader import YamlRefused, read_document
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from exclave.wire.specs import ChartSource

_INDEX_BYTES = 64 << 20
_CHART_BYTES = 100 << 20


@dataclass(frozen=True, slots=True)
class FetchedChart:
    """A packed chart, and what it was resolved to."""

    package: Path
    version: str
    url: str
    digest: str
    """The digest that the source gives it: of the package, or of the artifact in a registry."""


async def fetch_from_repository(
    downloads: ChartDownloads, context: JobContext, source: ChartSource, target: Path
) -> FetchedChart:
    """Download the chart that the repository's index lists for a version or a constraint."""
    index_file = target.with_name("index.yaml")
    base = source.url.rstrip("/") + "/"
    await downloads.fetch(context, base + "index.yaml", index_file, most=_INDEX_BYTES)
    entries = await asyncio.to_thread(_read_entries, index_file, source)
    version = _choose(entries, source)
    entry = entries[version]
    urls = [text for text in map(text_or_empty, list_or_empty(entry["urls"])) if text]
    if not urls:
        _refuse(f"the index of `{source.url}` names no file of `{source.chart}` {version}")
    context.log.system(f"{source.chart} {version} is at {urljoin(base, urls[0])}")
    url = await downloads.fetch(context, urljoin(base, urls[0]), target, most=_CHART_BYTES)
    digest = await asyncio.to_thread(_hash, target)
    wanted = text_or_empty(entry["digest"]).removeprefix("sha256:")
    if wanted and wanted != digest:
        message = f"`{url}` is sha256:{digest}, and the index says sha256:{wanted}"
        raise WorkFailed(Reason.ARTIFACT_TAMPERED, message)
    return FetchedChart(target, version, url, f"sha256:{digest}")


def _read_entries(file: Path, source: ChartSource) -> dict[str, dict[str, Json]]:
    """Return the entries of one chart by version."""
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        index = json.loads(text) if text.lstrip()[:1] == "{" else _read_yaml(text, source.chart)
    except (YamlRefused, ValueError, RecursionError) as error:
        message = f"the index of `{source.url}` cannot be read: {error}"
        raise WorkFailed(Reason.SOURCE_INVALID, message) from error
    charts = object_or_empty(object_or_empty(index).get("entries"))
    if source.chart not in charts:
        _refuse(f"`{source.url}` has no chart `{source.chart}`")
    listed = (object_or_empty(entry) for entry in list_or_empty(charts[source.chart]))
    return {
        text_or_empty(entry.get("version")): {
            "urls": entry.get("urls"),
            "digest": entry.get("digest"),
        }
        for entry in listed
    }


def _read_yaml(text: str, chart: str) -> Json:
    """Read an index: only the lines of one chart, because large ones take a minute to parse."""
    entry = _cut_entry(text, chart)
    return read_document(text if entry is None else f"entries:\n{entry}")


def _cut_entry(text: str, chart: str) -> str | None:
    """Return the lines of one chart in an index that Helm wrote; None if it looks otherwise."""
    start = re.search(r"^(?:entries:[ ]*\n)", text, re.MULTILINE)
    key = re.compile(rf"^([ ]+)[\"']?{re.escape(chart)}[\"']?:[ ]*\n", re.MULTILINE)
    match = None if start is None else key.search(text, start.end())
    if match is None:
        return None
    lines = [match[0].rstrip("\n")]
    inner = re.compile(rf"{match[1]}(?:[ ]|- |-$)|[ ]*$")
    for line in text[match.end() :].splitlines():
        if not inner.match(line):
            break
        lines.append(line)
    return "\n".join(lines)


def _choose(entries: dict[str, dict[str, Json]], source: ChartSource) -> str:
    try:
        version = choose_version(entries, source.version)
    except ValueError as error:
        _refuse(str(error))
    if version is None:
        newest = ", ".join(list(entries)[:8]) or "none"
        wanted = f" version `{source.version}`" if source.version else " stable version"
        _refuse(f"`{source.url}` has no{wanted} of `{source.chart}`; there are {newest}")
    return version


def _hash(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SOURCE_INVALID, message)
