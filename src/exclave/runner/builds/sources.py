"""Fetches the folder that an artifact is made of: from git, or from the uploaded app directory."""

import asyncio
import hashlib
from dataclasses import dataclass
from pathlib import Path

from exclave.base.archives import unpack_archive
from exclave.runner.builds.recipe import BuildWork
from exclave.runner.builds.source_checks import locate_folder
from exclave.runner.jobs.context import JobContext
from exclave.runner.outcomes import WorkFailed
from exclave.wire.images import ImageSource
from exclave.wire.jobs import Reason
from exclave.wire.specs import ChartSource, GitSource, UploadedSource


@dataclass(frozen=True, slots=True)
class FetchedFolder:
    """A folder of the source in the workspace; owned by the job's user."""

    root: Path
    """The root of the source, above the folder that the app names."""
    folder: Path
    commit: str = ""


async def fetch_folder(work: BuildWork) -> FetchedFolder:
    """Fetch the source and return the folder that the app names in it, ready to be checked.

    These are the steps `fetch` and `check` of a build; the caller goes on with the second.
    """
    work.begin("fetch")
    source = work.spec.source
    commit = ""
    match source:
        case GitSource():
            checkout = await work.tools.fetcher.fetch(work.context, source)
            root, commit = checkout.root, checkout.commit
        case UploadedSource():
            root = await _fetch_uploaded(work.context, source)
        case ChartSource() | ImageSource():
            message = f"a `{work.spec.type}` is not built from a source of type `{source.type}`"
            raise WorkFailed(Reason.SOURCE_INVALID, message)
    work.begin("check")
    return FetchedFolder(root, await _locate(work.context, root, source.directory), commit)


async def _locate(context: JobContext, root: Path, directory: str) -> Path:
    def locate() -> Path:
        with context.workspace.touch():
            return locate_folder(root, directory)

    return await asyncio.to_thread(locate)


async def _fetch_uploaded(context: JobContext, source: UploadedSource) -> Path:
    file, root = context.job.folder / "source.tar", context.workspace.work / "source"
    await context.job.uplink.get_archive(source.config_id, file)

    def unpack() -> None:
        with file.open("rb") as data:
            actual = f"sha256:{hashlib.file_digest(data, 'sha256').hexdigest()}"
            if actual != source.archive_digest:
                message = f"the archive is {actual} and not {source.archive_digest}"
                raise WorkFailed(Reason.ARTIFACT_TAMPERED, message)
            data.seek(0)
            with context.workspace.touch():
                unpack_archive(data, root)
        file.unlink()

    await asyncio.to_thread(unpack)
    return root
