"""Render a release once: with the server, or without it where its CRDs are not there yet."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from exclave.base.errors import Problem
from exclave.base.json_values import JsonObject, object_or_empty
from exclave.runner.commands import helm
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.failures import explain_helm
from exclave.runner.helm.outputs import copy_json
from exclave.runner.helm.records import Driver
from exclave.runner.helm.rendered import RenderedRelease, read_printed_release, read_template
from exclave.runner.helm.values import merge_values
from exclave.runner.kube.api.objects import SourceObject, read_objects
from exclave.runner.kube.api.yaml_reader import read_document
from exclave.runner.kube.changes.reading import MadeKind, list_made_kinds
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_NO_CRDS = "ensure CRDs are installed first"
WITHOUT_CLUSTER = "rendered without looking into the cluster: the chart's CRDs are not there yet"


class Rendering(NamedTuple):
    """A rendered release, the chart's CRDs, and notes for people."""

    release: RenderedRelease
    crds: Sequence[SourceObject]
    values: JsonObject
    """With placeholders instead of secrets."""
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    outside_images: Sequence[str] = ()
    """Images that no component of the app provides."""


async def render_release(
    job: HelmContext, driver: Driver, *, is_upgrade: bool, is_stuck: bool
) -> Rendering:
    """Render the chart with its values; the cluster is asked, and not changed.

    Helm refuses to upgrade a release that is stuck, so such a release is rendered as a template.
    """
    context, spec = job.context, job.spec
    shown = merge_values(spec)
    filled = object_or_empty(job.filler.fill_json(copy_json(shown)))
    values = job.write_values("values.json", filled)
    crds = await asyncio.to_thread(_read_crds, job)
    names = (job.tool, spec.release, job.chart, spec.namespace)
    if is_stuck:
        argv = helm.template_with_server(*names, values=values, is_upgrade=is_upgrade)
    else:
        argv = helm.render(*names, values=values, take_ownership=True)
    printed = await job.run_helm("upgrade --dry-run", argv, driver)
    if printed.code == 0 and is_stuck:
        return Rendering(await _read_template(job, printed.stdout), crds, shown)
    if printed.code == 0:
        return Rendering(_read(printed.stdout), crds, shown)
    if _NO_CRDS not in printed.stderr or not crds:
        raise explain_helm("upgrade --dry-run", printed, context.mask)
    release = await _render_alone(job, driver, values, crds, is_upgrade=is_upgrade)
    warnings = await asyncio.to_thread(_warn_about_lookup, job)
    return Rendering(release, crds, shown, (WITHOUT_CLUSTER,), warnings)


async def _render_alone(
    job: HelmContext,
    driver: Driver,
    values: Path,
    crds: Sequence[SourceObject],
    *,
    is_upgrade: bool,
) -> RenderedRelease:
    discovery = await job.client.discover()
    made = [_write_kind(kind) for kind in list_made_kinds(crds)]
    argv = helm.template(
        job.tool,
        job.spec.release,
        job.chart,
        job.spec.namespace,
        values=values,
        kube_version=await job.client.read_version(),
        api_versions=[*discovery.list_api_versions(), *(text for pair in made for text in pair)],
        is_upgrade=is_upgrade,
    )
    printed = await job.run_helm("template", argv, driver)
    if printed.code != 0:
        raise explain_helm("template", printed, job.context.mask)
    return await _read_template(job, printed.stdout)


async def _read_template(job: HelmContext, printed: str) -> RenderedRelease:
    metadata = await asyncio.to_thread(_read_metadata, job)
    try:
        return read_template(printed, metadata)
    except Problem as problem:
        raise _refuse_objects(problem) from problem


def _read(printed: str) -> RenderedRelease:
    try:
        return read_printed_release(printed)
    except Problem as problem:
        raise _refuse_objects(problem) from problem
    except ValueError as error:
        raise WorkFailed(Reason.RUNNER_ERROR, str(error)) from error


def _refuse_objects(problem: Problem) -> WorkFailed:
    return WorkFailed(
        Reason.OBJECT_REFUSED, f"the chart renders something wrong: {problem.message}"
    )


def _read_crds(job: HelmContext) -> list[SourceObject]:
    """Return the definitions in the folders `crds` of the chart and its subcharts."""
    if job.spec.crds == "skip":
        return []
    sources: list[SourceObject] = []
    with job.context.workspace.touch():
        for file in sorted(job.chart.rglob("crds/*")):
            if file.is_file() and file.suffix in {".yaml", ".yml", ".json"}:
                try:
                    sources += read_objects(file.read_text(encoding="utf-8"))
                except (Problem, UnicodeDecodeError) as error:
                    name = file.relative_to(job.chart)
                    raise WorkFailed(Reason.OBJECT_REFUSED, f"{name}: {error}") from error
    return sources


def _read_metadata(job: HelmContext) -> JsonObject:
    with job.context.workspace.touch():
        return object_or_empty(read_document((job.chart / "Chart.yaml").read_text()))


def _warn_about_lookup(job: HelmContext) -> list[str]:
    with job.context.workspace.touch():
        files = [file for file in job.chart.rglob("templates/*") if file.is_file()]
        using = [file.name for file in files if b"lookup" in file.read_bytes()]
    return [f"`{name}` uses `lookup`, which found nothing in this plan" for name in sorted(using)]


def _write_kind(kind: MadeKind) -> tuple[str, str]:
    version = f"{kind.group}/{kind.version}"
    return version, f"{version}/{kind.kind}"
