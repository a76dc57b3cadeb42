"""Recipe of artifacts that are a folder as it is: Terraform modules, the sources of actions."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from exclave.base.archives import pack_folder
from exclave.runner.builds.recipe import BuildWork, BuiltArtifact
from exclave.runner.builds.sources import fetch_folder
from exclave.runner.jobs.context import JobContext

SOURCE_TYPE = "application/vnd.exclave.source.v1.tar"


async def pack_source(work: BuildWork, check: Callable[[Path], int]) -> BuiltArtifact:
    """Fetch a folder, check it, pack it and push it; `check` returns the number of files.

    The artifact has no annotations: its digest depends on its content alone.
    """
    context, spec = work.context, work.spec
    source = await fetch_folder(work)
    files = await asyncio.to_thread(_check, context, source.folder, check)
    work.begin("pack")
    file = context.job.folder / "artifact.tar"
    layer = await asyncio.to_thread(_pack, context, source.folder, file)
    size = file.stat().st_size
    context.log.system(f"files: {files}, bytes: {size}, layer: {layer}")
    work.begin("push")
    pushed = await work.registry.push_artifact(
        spec.repository,
        artifact_type=f"application/vnd.exclave.{spec.type}.v1",
        layer=file,
        layer_type=SOURCE_TYPE,
        annotations={},
    )
    return BuiltArtifact(pushed, layer, size, files, source.commit)


def _check(context: JobContext, folder: Path, check: Callable[[Path], int]) -> int:
    with context.workspace.touch():
        return check(folder)


def _pack(context: JobContext, folder: Path, target: Path) -> str:
    with target.open("wb") as out, context.workspace.touch():
        return pack_folder(folder, out)
