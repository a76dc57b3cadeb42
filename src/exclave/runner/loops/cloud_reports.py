"""Reports of a Stack in a cloud: what is applied, its secrets, and that the machine goes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from exclave import __version__
from exclave.base.digests import digest_json
from exclave.base.errors import Problem
from exclave.base.json_values import Json, text_or_empty
from exclave.base.logs import Log
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy, is_passing, retry
from exclave.client.stacks import StackApi
from exclave.runner.cloud.accounts import SecretDenied
from exclave.runner.cloud.document import FORMAT, CloudDocument
from exclave.runner.cloud.imds import Machine
from exclave.runner.cloud.stores import CloudSecrets
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.executions.deps import Deps
from exclave.runner.executions.kill_switch import ThrownBy, is_disabled_by
from exclave.runner.loops.document_watch import DocumentWatch
from exclave.wire.stacks import (
    INPUT_SECRET,
    Cloud,
    DocumentFacts,
    Leaving,
    ReportedMachine,
    ReportedProgram,
    StackReport,
)

_log = Log("runner.reports")

REPORTS: Final = RetryPolicy(first_s=0.5, longest_s=30.0)
FAREWELLS: Final = RetryPolicy(first_s=0.5, longest_s=2.0, give_up_s=8.0)
_FAREWELL_WITHIN_S: Final = 15.0
_LOOK_EVERY_S: Final = 1.0
_AGAIN_AFTER_S: Final = 60.0
_REFERENCES: Final[Mapping[Cloud, str]] = {
    Cloud.AWS: "_arn",
    Cloud.AZURE: "_secret_id",
    Cloud.GCP: "_secret_name",
    Cloud.LOCAL: "_arn",
}
"""How the output is named that refers to a secret; modules of apps read it."""


class CloudReporter:
    """Reports after each start, when something changed, when asked, and every minute."""

    def __init__(
        self,
        cloud: Cloud,
        api: StackApi,
        watch: DocumentWatch,
        secrets: CloudSecrets,
        read_machine: Callable[[], Awaitable[Machine]],
        is_ending: Callable[[], Awaitable[bool]],
        read_problem: Callable[[], str] = str,
    ) -> None:
        self._cloud = cloud
        self._api = api
        self._watch = watch
        self._secrets = secrets
        self._read_machine = read_machine
        self._is_ending = is_ending
        self._read_problem = read_problem
        self._sending = asyncio.Lock()
        self._machine: ReportedMachine | None = None
        self._given: frozenset[str] | None = None
        """The secrets that had a value when they could be read last."""

    async def run(self, deps: Deps) -> None:
        """Report until the runner stops; nothing before the first document."""
        sent, looked_at = "", float("-inf")
        failures = 0
        while not deps.signals.stopping.is_set():
            pause = _LOOK_EVERY_S
            again_after = max(_AGAIN_AFTER_S, deps.pace.every_s)
            is_due = deps.clock.monotonic() - looked_at > again_after
            document = self._watch.document
            if document is not None and (deps.signals.report_wanted or is_due):
                try:
                    if deps.signals.report_wanted:
                        deps.signals.report_wanted = False
                        await self._watch.look(deps)
                    async with self._sending:
                        sent = await self._report(deps, self._watch.document or document, sent)
                    looked_at, failures = deps.clock.monotonic(), 0
                except IdentityRefused:
                    raise
                except Problem as problem:
                    _log.warning("report_failed", code=problem.code, message=problem.message)
                    pause = REPORTS.choose_delay(deps.randomness, failures, problem)
                    failures += 1
            await deps.clock.sleep(pause)

    async def leave(self, deps: Deps) -> None:
        """Announce that the machine goes, and why; a report would say that it is still there."""
        try:
            async with asyncio.timeout(_FAREWELL_WITHIN_S), self._sending:
                leaving = await self._explain_leaving()
                await retry(
                    lambda: deps.session.call(lambda token: self._api.leave(token, leaving)),
                    FAREWELLS,
                    deps.clock,
                    deps.randomness,
                )
        except TimeoutError:
            _log.warning("leaving_not_announced", message="the control plane did not answer")
        except Problem as problem:
            _log.warning("leaving_not_announced", code=problem.code, message=problem.message)
        else:
            deps.audit.write("leaving_announced", reason=leaving.reason)

    async def _explain_leaving(self) -> Leaving:
        """Return why the machine goes: its cloud ends it, or only the runner is stopped."""
        try:
            is_ending = await self._is_ending()
        except Problem as problem:
            _log.warning("ending_unknown", message=problem.message)
            is_ending = False
        return Leaving(reason="terminating" if is_ending else "stopping")

    async def _report(self, deps: Deps, document: CloudDocument, sent: str) -> str:
        """Send a report; return its digest."""
        is_stopped = is_disabled_by(deps.disk.path, ThrownBy.STACK)
        report = await self.build_report(document, is_stopped=is_stopped)
        digest = digest_json(report.model_dump(mode="json"))
        try:
            await deps.session.call(lambda token: self._api.report(token, report))
        except RemoteProblem as problem:
            if is_passing(problem):
                raise
            _log.warning("report_refused", code=problem.code, message=problem.message)
            return digest
        if digest != sent:
            deps.audit.write("stack_reported", digest=digest)
        return digest

    async def build_report(
        self, document: CloudDocument, *, is_stopped: bool = False
    ) -> StackReport:
        """Return the report: what the document says, and whether each secret was given.

        A Stack that is stopped in AWS denies the runner everything, also the document that says so.
        """
        there = await self._list_given(is_stopped=is_stopped)
        region = text_or_empty(document.outputs.get("region")) or "unknown"
        return StackReport(
            facts={"region": region},
            secrets={name: name in there for name in document.secrets},
            inputs=dict(document.inputs),
            sensitive_inputs=[
                name for name in document.input_secrets if f"{INPUT_SECRET}{name}" in there
            ],
            document=DocumentFacts(
                format=FORMAT, digest=document.digest, generator=document.generator
            ),
            outputs={**document.outputs, **self._refer_to_secrets(document)},
            roles=dict(document.roles),
            mode=document.mode,
            enabled=document.is_enabled and not is_stopped,
            machine=await self._describe_machine(),
            program=ReportedProgram(
                version=__version__, updates=document.updates, problem=self._read_problem()
            ),
        )

    async def _list_given(self, *, is_stopped: bool) -> frozenset[str]:
        """Return the secrets that have a value; of a stopped Stack, as far as it was known."""
        try:
            self._given = await self._secrets.list_names()
        except SecretDenied:
            if not is_stopped or self._given is None:
                raise
        return self._given

    def _refer_to_secrets(self, document: CloudDocument) -> dict[str, Json]:
        suffix = _REFERENCES[self._cloud]
        return {f"{name}{suffix}": reference for name, reference in document.secrets.items()}

    async def _describe_machine(self) -> ReportedMachine | None:
        """Return what the machine is, as soon as its metadata server says so."""
        if self._machine is None:
            try:
                machine = await self._read_machine()
            except Problem as problem:
                _log.warning("machine_unknown", message=problem.message)
                return None
            self._machine = ReportedMachine(
                id=machine.id, zone=machine.zone, image=machine.image, type=machine.type
            )
        return self._machine
