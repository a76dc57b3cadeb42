"""Recipe of charts: from a folder, a chart repository or a registry to an artifact of Helm's."""

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path

from exclave.base.digests import canonical_json
from exclave.base.json_values import JsonObject
from exclave.client.oci.client import ArtifactConfig
from exclave.runner.builds.charts.chart_files import Chart, read_chart
from exclave.runner.builds.charts.dependencies import add_dependencies
from exclave.runner.builds.charts.registry import fetch_from_registry
from exclave.runner.builds.charts.repository import FetchedChart, fetch_from_repository
from exclave.runner.builds.recipe import BuildWork, BuiltArtifact
from exclave.runner.builds.sbom.attach import Contents, attach_sbom
from exclave.runner.builds.sbom.charts import read_chart_contents
from exclave.runner.builds.sources import fetch_folder
from exclave.runner.commands import helm
from exclave.runner.helm.packages import (
    CONFIG_TYPE,
    LAYER_TYPE,
    pack_chart,
    unpack_chart,
)
from exclave.runner.jobs.context import JobContext
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.wire.jobs import Reason
from exclave.wire.specs import ChartSource


@dataclass(frozen=True, slots=True)
class _Source:
    """A chart's folder in the workspace, and where it came from."""

    root: Path
    folder: Path
    commit: str = ""
    fetched: FetchedChart | None = None


async def build_chart(work: BuildWork) -> BuiltArtifact:
    """Fetch, check, complete, lint, pack and push a chart.

    Only the content decides about the digest: what varies is in the provenance.
    """
    context, spec = work.context, work.spec
    source = await _fetch(work)
    chart = await asyncio.to_thread(_read, context, source)
    context.log.system(f"chart {chart.name} {chart.version}, files: {chart.files}")
    tool = (await work.find_tool("helm")).path
    work.begin("dependencies")
    taken = await add_dependencies(work, work.tools.charts, tool, chart, source.root)
    work.begin("lint")
    await _lint(context, tool, chart, is_ours=source.fetched is None)
    work.begin("pack")
    package = await _package(context, tool, chart)
    file = context.job.folder / "chart.tgz"
    layer = await asyncio.to_thread(_pack, context, package, file)
    size = file.stat().st_size
    context.log.system(f"bytes: {size}, layer: {layer}")
    work.begin("push")
    pushed = await work.registry.push_artifact(
        spec.repository,
        artifact_type="",
        layer=file,
        layer_type=LAYER_TYPE,
        annotations={},
        config=ArtifactConfig(CONFIG_TYPE, canonical_json(package.metadata)),
    )
    contents = await asyncio.to_thread(_read_contents, context, package)
    await attach_sbom(work, pushed, contents, "APPLICATION")
    materials = (*_describe_fetched(source.fetched), *taken)
    return BuiltArtifact(pushed, layer, size, chart.files, source.commit, materials)


async def _fetch(work: BuildWork) -> _Source:
    source = work.spec.source
    if not isinstance(source, ChartSource):
        folder = await fetch_folder(work)
        return _Source(folder.root, folder.folder, folder.commit)
    work.begin("fetch")
    target = work.context.job.folder / "fetched.tgz"
    fetch = fetch_from_registry if source.url.startswith("oci://") else fetch_from_repository
    fetched = await fetch(work.tools.charts, work.context, source, target)
    if fetched.version != source.version:
        work.context.log.system(
            f"helm_repo {'without version' if not source.version else source.version}: pinned to"
            f" {fetched.version} by this build; `exclave builds create` looks again"
        )
    work.begin("check")
    root = work.context.workspace.work / "source"
    return await asyncio.to_thread(_unpack, work.context, fetched, root)


def _unpack(context: JobContext, fetched: FetchedChart, root: Path) -> _Source:
    with context.workspace.touch():
        return _Source(root, unpack_chart(fetched.package, root), "", fetched)


def _read(context: JobContext, source: _Source) -> Chart:
    with context.workspace.touch():
        return read_chart(source.folder, source.root)


async def _lint(context: JobContext, tool: str, chart: Chart, *, is_ours: bool) -> None:
    """Check a chart with Helm; errors in a chart of somebody else are only in the log."""
    env = context.build_env(helm.build_helm_env(context.workspace.home))
    command = Command(helm.lint(tool, chart.folder), env, context.workspace.work)
    printed = await context.capture(command, name="`helm lint`", quiet=False)
    if printed.code != 0 and is_ours:
        message = find_lint_errors(printed.stdout + printed.stderr)
        raise WorkFailed(Reason.SOURCE_INVALID, message or "helm lint failed; the log says why")


def find_lint_errors(printed: str) -> str:
    """Return the errors that `helm lint` printed, one per line: Helm breaks and indents them."""
    errors: list[str] = []
    is_error = False
    for line in printed.splitlines():
        if is_error and line.startswith("  "):
            errors[-1] += f" {line.strip()}"
            continue
        is_error = line.startswith("[ERROR]")
        if is_error:
            errors.append(line.removeprefix("[ERROR]").strip())
    return "\n".join(errors)


async def _package(context: JobContext, tool: str, chart: Chart) -> Chart:
    """Let Helm choose the files (`.helmignore`, links), and unpack what it chose.

    The bytes of its package follow the times of files, so they are not used.
    """
    folder = context.workspace.work / "package"
    env = context.build_env(helm.build_helm_env(context.workspace.home))
    command = Command(helm.package(tool, chart.folder, folder), env, context.workspace.work)
    printed = await context.capture(command, name="`helm package`")
    if printed.code != 0:
        complaint = (printed.stderr or printed.stdout).strip().removeprefix("Error: ")
        raise WorkFailed(Reason.SOURCE_INVALID, f"the chart cannot be packed: {complaint[-1000:]}")

    def unpack() -> Chart:
        with context.workspace.touch():
            package = next(folder.glob("*.tgz"))
            target = context.workspace.work / "packed"
            unpacked = unpack_chart(package, target)
            shutil.rmtree(folder)
            return read_chart(unpacked, target)

    return await asyncio.to_thread(unpack)


def _pack(context: JobContext, chart: Chart, file: Path) -> str:
    with file.open("wb") as out, context.workspace.touch():
        return pack_chart(chart.folder, chart.name, out)


def _read_contents(context: JobContext, chart: Chart) -> Contents:
    with context.workspace.touch():
        return read_chart_contents(chart)


def _describe_fetched(fetched: FetchedChart | None) -> tuple[JsonObject, ...]:
    if fetched is None:
        return ()
    algorithm, _, value = fetched.digest.partition(":")
    name = f"chart {fetched.version}"
    return ({"name": name, "uri": fetched.url, "digest": {algorithm: value}},)
