"""Executor of `secrets` jobs: reports which secrets exist and generates missing ones."""

from collections.abc import Callable, Sequence

from exclave.base.ids import Randomness
from exclave.base.secrets import Secret
from exclave.runner.jobs.executor import Executor, JobRun, StopRequest, run_guarded
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed, end_by_stop, fail
from exclave.runner.secrets.store import SecretStore, generate_secret
from exclave.wire.jobs import JsonValue, OutcomeState, Reason
from exclave.wire.runner import Outcome
from exclave.wire.specs import SecretsSpec, WantedSecret

_LENGTH_STEP = 16
"""Reported lengths are rounded up to a multiple of this, so that they reveal little."""


class SecretsExecutor(Executor):
    """The executor of `secrets` jobs. No value leaves it."""

    def __init__(
        self, store: SecretStore, randomness: Randomness, advise: Callable[[str], str]
    ) -> None:
        self._store = store
        self._randomness = randomness
        self._advise = advise

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Report which secrets exist; the job fails if a required one is missing."""
        return await run_guarded(job, log, self._run(job, log, stop))

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        spec = job.dispatch.spec
        if not isinstance(spec, SecretsSpec):
            raise WorkFailed(Reason.KIND_UNSUPPORTED, f"this is a `{spec.kind}` job")
        if stop.reason is not None:
            return end_by_stop(stop.reason, "stopped before it began")
        return await self._check(spec.secrets, log)

    async def _check(self, wanted: Sequence[WantedSecret], log: LogWriter) -> Outcome:
        for secret in wanted:
            await self._fill(secret, log)
        there = await self._store.list_names()
        missing = [secret.name for secret in wanted if secret.required and secret.name not in there]
        if missing:
            return fail(Reason.SECRET_MISSING, self._describe_missing(missing))
        held = await self._store.fetch(secret.name for secret in wanted if secret.name in there)
        facts: dict[str, JsonValue] = {}
        for secret in wanted:
            length = _measure(held.get(secret.name))
            log.system(f"{secret.name}: {'there' if secret.name in held else 'not given'}")
            facts[secret.name] = {"exists": secret.name in held, "length": length}
        return Outcome(
            state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, outputs={"secrets": facts}
        )

    async def _fill(self, wanted: WantedSecret, log: LogWriter) -> None:
        """Generate the secret or store its default, unless the customer has set a value."""
        if wanted.auto_generate:
            value = generate_secret(self._randomness)
            if await self._store.put_missing(wanted.name, value):
                log.system(f"{wanted.name}: generated")
        elif wanted.default:
            await self._store.put_missing(wanted.name, Secret(wanted.default))

    def _describe_missing(self, names: Sequence[str]) -> str:
        advice = "; ".join(f"{name}: {self._advise(name)}" for name in names)
        return f"missing on the customer's side: {advice}"


def _measure(value: Secret | None) -> int:
    length = 0 if value is None else len(value.reveal())
    return -(-length // _LENGTH_STEP) * _LENGTH_STEP
