"""Executor of `build` jobs: runs the recipe of the artifact's type and attaches the provenance."""

from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave import __version__
from exclave.base.archives import ArchiveProblem
from exclave.base.clock import Clock
from exclave.base.errors import Kind, Problem
from exclave.client.oci.documents import PushedManifest
from exclave.client.problems import RemoteProblem
from exclave.runner.builds.provenance import (
    ARTIFACT_TYPE,
    LAYER_TYPE,
    PREDICATE,
    BuildTimes,
    make_statement,
    sign_statement,
)
from exclave.runner.builds.recipe import (
    BuildTools,
    BuildWork,
    BuiltArtifact,
    OpenRegistry,
    Progress,
)
from exclave.runner.builds.recipes import find_recipe
from exclave.runner.jobs.context import JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import Executor, JobRun, StopRequest, require_spec, run_guarded
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES, write_private
from exclave.runner.logs.spool import LogWriter
from exclave.wire.jobs import JsonValue, OutcomeState, Reason
from exclave.wire.runner import Outcome
from exclave.wire.specs import BuildSpec

_GRACE_S = 10.0


class BuildExecutor(Executor):
    """The executor of `build` jobs."""

    def __init__(
        self,
        tools: BuildTools,
        open_registry: OpenRegistry,
        load_key: Callable[[], Ed25519PrivateKey],
        clock: Clock,
        *,
        children: ChildSettings | None = None,
        keep_free_bytes: int = KEEP_FREE_BYTES,
    ) -> None:
        self._tools = tools
        self._open_registry = open_registry
        self._load_key = load_key
        self._clock = clock
        self._children = children or ChildSettings()
        self._keep_free_bytes = keep_free_bytes

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Build and return the outcome; a failure names the part and the step."""
        progress = Progress(log)
        return await run_guarded(
            job,
            log,
            self._run(job, log, stop, progress),
            prefix=lambda: f"{_name_part(job)}, step {progress.step}: ",
            classify=lambda problem: _classify(progress, problem),
        )

    async def _run(
        self, job: JobRun, log: LogWriter, stop: StopRequest, progress: Progress
    ) -> Outcome:
        spec = require_spec(job, BuildSpec)
        recipe = find_recipe(spec.type)
        context = open_context(
            job,
            log,
            stop,
            clock=self._clock,
            children=self._children,
            limits=JobLimits(spec.timeout_s, _GRACE_S, self._keep_free_bytes),
        )
        started_at = self._clock.now()
        async with self._open_registry(job.uplink) as registry:
            work = BuildWork(context, spec, registry, self._tools, progress)
            built = await recipe(work)
            log.system(f"{spec.repository}@{built.pushed.digest}")
            work.begin("provenance")
            times = BuildTimes(started_at, self._clock.now())
            attached = await self._attach(work, built, times)
        return _succeed(built, attached)

    async def _attach(
        self, work: BuildWork, built: BuiltArtifact, times: BuildTimes
    ) -> PushedManifest:
        job = work.context.job
        statement = make_statement(job.dispatch, work.spec, built, times, __version__)
        file = job.folder / "provenance.json"
        write_private(file, sign_statement(statement, self._load_key()))
        attached = await work.registry.push_artifact(
            work.spec.repository,
            artifact_type=ARTIFACT_TYPE,
            layer=file,
            layer_type=LAYER_TYPE,
            annotations={"in-toto.io/predicate-type": PREDICATE},
            subject=built.pushed,
        )
        work.context.log.system(f"provenance {attached.digest}")
        return attached


def _succeed(built: BuiltArtifact, attached: PushedManifest) -> Outcome:
    outputs: dict[str, JsonValue] = {
        "digest": built.pushed.digest,
        "commit": built.commit,
        "size": built.size,
        "files": built.files,
        "provenance": attached.digest,
    }
    if built.findings:
        outputs["policies"] = [finding.model_dump(mode="json") for finding in built.findings]
    return Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, outputs=outputs)


def _name_part(job: JobRun) -> str:
    spec = job.dispatch.spec
    return _write_part(spec.part) if isinstance(spec, BuildSpec) else spec.kind


def _write_part(part: str) -> str:
    """Return the display name of a part: `component:db` becomes component `db`."""
    kind, _, name = part.partition(":")
    return f"{kind} `{name.replace(':', '` step `')}`" if name else kind


def _classify(progress: Progress, problem: Problem) -> Reason:
    """Return the reason for a failure of the control plane or of packing."""
    if isinstance(problem, ArchiveProblem):
        return Reason.SOURCE_INVALID
    denied = problem.kind in {Kind.FORBIDDEN, Kind.UNAUTHENTICATED}
    if isinstance(problem, RemoteProblem) and denied:
        return Reason.ACCESS_DENIED
    if progress.step == "fetch":
        return Reason.SOURCE_UNAVAILABLE
    return Reason.ARTIFACT_UNAVAILABLE
