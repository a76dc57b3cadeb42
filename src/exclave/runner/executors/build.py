"""Executor of `build` jobs: fetches, checks, packs and pushes a source, with its provenance."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave import __version__
from exclave.base.archives import ArchiveProblem, pack_folder, unpack_archive
from exclave.base.clock import Clock
from exclave.base.errors import Kind, Problem
from exclave.client.oci.documents import PushedManifest
from exclave.client.problems import RemoteProblem
from exclave.runner.builds.provenance import (
    ARTIFACT_TYPE,
    LAYER_TYPE,
    PREDICATE,
    Built,
    make_statement,
    sign_statement,
)
from exclave.runner.builds.source_checks import check_source, locate_folder
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.git.fetch import GitFetcher
from exclave.runner.jobs.context import JobContext, JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import Executor, JobRun, StopRequest, run_guarded
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES, write_private
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from exclave.wire.specs import BuildSpec, GitSource, UploadedSource

SOURCE_TYPE = "application/vnd.exclave.source.v1.tar"
_CHUNK = 1 << 20
_GRACE_S = 10.0


class Registry(Protocol):
    """The registry that artifacts are pushed to."""

    async def push_artifact(
        self,
        repository: str,
        *,
        artifact_type: str,
        layer: Path,
        layer_type: str,
        annotations: Mapping[str, str],
        subject: PushedManifest | None = None,
    ) -> PushedManifest:
        """Push one file as an artifact."""
        ...


OpenRegistry = Callable[[Uplink], AbstractAsyncContextManager[Registry]]


@dataclass(frozen=True, slots=True)
class _Source:
    root: Path
    commit: str = ""


@dataclass(frozen=True, slots=True)
class _Packed:
    file: Path
    digest: str
    files: int


@dataclass(slots=True)
class _Progress:
    """The current step of a build, which is named in error messages."""

    log: LogWriter
    step: str = "prepare"

    def begin(self, step: str, context: JobContext) -> None:
        """Enter a step; raise if a stop was requested."""
        context.check()
        self.step = step
        self.log.system(f"▸ step {step}")


class BuildExecutor(Executor):
    """The executor of `build` jobs."""

    def __init__(
        self,
        fetcher: GitFetcher,
        open_registry: OpenRegistry,
        load_key: Callable[[], Ed25519PrivateKey],
        clock: Clock,
        *,
        keep_free_bytes: int = KEEP_FREE_BYTES,
    ) -> None:
        self._fetcher = fetcher
        self._open_registry = open_registry
        self._load_key = load_key
        self._clock = clock
        self._keep_free_bytes = keep_free_bytes

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Build and return the outcome; a failure names the part and the step."""
        progress = _Progress(log)
        return await run_guarded(
            job,
            log,
            self._run(job, log, stop, progress),
            prefix=lambda: f"{_name_part(job)}, step {progress.step}: ",
            classify=lambda problem: _classify(progress, problem),
        )

    async def _run(
        self, job: JobRun, log: LogWriter, stop: StopRequest, progress: _Progress
    ) -> Outcome:
        context = open_context(
            job,
            log,
            stop,
            clock=self._clock,
            children=ChildSettings(),
            limits=JobLimits(job.dispatch.spec.timeout_s, _GRACE_S, self._keep_free_bytes),
        )
        return await self._build(context, progress)

    async def _build(self, context: JobContext, progress: _Progress) -> Outcome:
        spec = context.job.dispatch.spec
        if not isinstance(spec, BuildSpec):
            raise WorkFailed(Reason.KIND_UNSUPPORTED, f"this is a `{spec.kind}` job")
        started_at = self._clock.now()
        progress.begin("fetch", context)
        source = await self._fetch(context, spec)
        progress.begin("check", context)
        folder, files = await asyncio.to_thread(_check, context, spec, source.root)
        progress.begin("pack", context)
        file = context.job.folder / "artifact.tar"
        packed = _Packed(file, await asyncio.to_thread(_pack, context, folder, file), files)
        size = file.stat().st_size
        context.log.system(f"files: {files}, bytes: {size}, layer: {packed.digest}")
        async with self._open_registry(context.job.uplink) as registry:
            progress.begin("push", context)
            pushed = await _push(context, spec, registry, packed)
            progress.begin("provenance", context)
            now = self._clock.now()
            built = Built(pushed.digest, packed.digest, source.commit, started_at, now)
            attached = await self._attach(context, spec, registry, pushed, built)
        outputs = {
            "digest": pushed.digest,
            "commit": source.commit,
            "size": size,
            "files": files,
            "provenance": attached.digest,
        }
        return Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, outputs=outputs)

    async def _fetch(self, context: JobContext, spec: BuildSpec) -> _Source:
        match spec.source:
            case GitSource():
                checkout = await self._fetcher.fetch(context, spec.source)
                return _Source(checkout.root, checkout.commit)
            case UploadedSource():
                return await _fetch_uploaded(context, spec.source)

    async def _attach(
        self,
        context: JobContext,
        spec: BuildSpec,
        registry: Registry,
        pushed: PushedManifest,
        built: Built,
    ) -> PushedManifest:
        statement = make_statement(context.job.dispatch, spec, built, __version__)
        file = context.job.folder / "provenance.json"
        write_private(file, sign_statement(statement, self._load_key()))
        attached = await registry.push_artifact(
            spec.repository,
            artifact_type=ARTIFACT_TYPE,
            layer=file,
            layer_type=LAYER_TYPE,
            annotations={"in-toto.io/predicate-type": PREDICATE},
            subject=pushed,
        )
        context.log.system(f"provenance {attached.digest}")
        return attached


async def _push(
    context: JobContext, spec: BuildSpec, registry: Registry, packed: _Packed
) -> PushedManifest:
    """Push the artifact; without annotations, its digest depends on its content alone."""
    pushed = await registry.push_artifact(
        spec.repository,
        artifact_type=f"application/vnd.exclave.{spec.type}.v1",
        layer=packed.file,
        layer_type=SOURCE_TYPE,
        annotations={},
    )
    context.log.system(f"{spec.repository}@{pushed.digest}")
    return pushed


async def _fetch_uploaded(context: JobContext, source: UploadedSource) -> _Source:
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
    return _Source(root)


def _check(context: JobContext, spec: BuildSpec, root: Path) -> tuple[Path, int]:
    """Find the folder and look at its files; answer it, and how many there are."""
    with context.workspace.touch():
        folder = locate_folder(root, spec.source.directory)
        return folder, check_source(spec.type, folder)


def _pack(context: JobContext, folder: Path, target: Path) -> str:
    with target.open("wb") as out, context.workspace.touch():
        return pack_folder(folder, out)


def _name_part(job: JobRun) -> str:
    spec = job.dispatch.spec
    return _write_part(spec.part) if isinstance(spec, BuildSpec) else spec.kind


def _write_part(part: str) -> str:
    """Return the display name of a part: `component:db` becomes component `db`."""
    kind, _, name = part.partition(":")
    return f"{kind} `{name.replace(':', '` step `')}`" if name else kind


def _classify(progress: _Progress, problem: Problem) -> Reason:
    """Return the reason for a failure of the control plane or of packing."""
    if isinstance(problem, ArchiveProblem):
        return Reason.SOURCE_INVALID
    denied = problem.kind in {Kind.FORBIDDEN, Kind.UNAUTHENTICATED}
    if isinstance(problem, RemoteProblem) and denied:
        return Reason.ACCESS_DENIED
    if progress.step == "fetch":
        return Reason.SOURCE_UNAVAILABLE
    return Reason.ARTIFACT_UNAVAILABLE
