"""Reports of a Stack: after each start, when inputs or secrets change, and when requested."""

from collections.abc import Mapping

from exclave.base.digests import digest_json
from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy, is_passing
from exclave.client.stacks import StackApi
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.executions.deps import Deps
from exclave.runner.kube.access.probe import ClusterProbe
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.store import SecretStore
from exclave.runner.stack.folder import ReportReply, StackFolder
from exclave.runner.stack.machine_facts import collect_facts
from exclave.wire.stacks import INPUT_SECRET, ReportedCluster, StackReport, StackTerms

_log = Log("runner.stack")

REPORTS = RetryPolicy(first_s=0.5, longest_s=30.0)
_LOOK_EVERY_S = 1.0
_AGAIN_AFTER_S = 60.0
"""How often a Stack without changes asks whether the app requires something else.

Less often in a big fleet, because a poll reply says so too.
"""


class Reporter:
    """Reports the Stack to the control plane; never sends the value of a secret."""

    def __init__(
        self,
        folder: StackFolder,
        api: StackApi,
        secrets: SecretStore,
        probe: ClusterProbe | None = None,
        *,
        isolated: bool = False,
    ) -> None:
        self._folder = folder
        self._isolated = isolated
        self._api = api
        self._secrets = secrets
        self._probe = probe

    async def run(self, deps: Deps) -> None:
        """Report, then watch for changes, as long as the runner runs."""
        sent, sent_at = "", 0.0
        failures = 0
        while True:
            pause = _LOOK_EVERY_S
            try:
                report = await self.build_report()
                digest = digest_json(report.model_dump())
                now = deps.clock.monotonic()
                again_after = max(_AGAIN_AFTER_S, deps.pace.every_s)
                if digest != sent or deps.signals.report_wanted or now - sent_at > again_after:
                    deps.signals.report_wanted = False
                    await self._send(deps, report, digest)
                    sent, sent_at, failures = digest, now, 0
            except IdentityRefused:
                raise
            except Problem as problem:
                _log.warning("report_failed", code=problem.code, message=problem.message)
                pause = REPORTS.choose_delay(deps.randomness, failures, problem)
                failures += 1
            except WorkFailed as failed:
                _log.warning("report_failed", message=failed.message)
            await deps.clock.sleep(pause)

    async def build_report(self) -> StackReport:
        """Return the report about this Stack."""
        terms = self._folder.read_document().terms
        there = await self._secrets.list_names()
        given = self._folder.read_inputs()
        return StackReport(
            facts=collect_facts(self._folder, isolated=self._isolated),
            secrets={secret.name: secret.name in there for secret in terms.secrets},
            inputs=_choose_inputs(terms, given),
            sensitive_inputs=[
                declared.name
                for declared in terms.inputs
                if declared.sensitive and f"{INPUT_SECRET}{declared.name}" in there
            ],
            clusters=await self._describe_clusters(),
        )

    async def _describe_clusters(self) -> dict[str, ReportedCluster]:
        probed = {} if self._probe is None else await self._probe.read()
        return {
            name: ReportedCluster(reachable=cluster.reachable, version=cluster.version)
            for name, cluster in probed.items()
        }

    async def _send(self, deps: Deps, report: StackReport, digest: str) -> None:
        try:
            terms = await deps.session.call(lambda token: self._api.report(token, report))
        except RemoteProblem as problem:
            if is_passing(problem):
                raise
            self._note(deps, digest, problem)
            return
        if terms != self._folder.read_document().terms:
            deps.audit.write("terms_changed")
        self._folder.write_terms(terms)
        self._note(deps, digest)
        deps.audit.write("stack_reported", digest=digest)

    def _note(self, deps: Deps, digest: str, problem: Problem | None = None) -> None:
        """Leave the answer where `stack status` and `stack inputs set` find it."""
        message, hint = ("", "") if problem is None else (problem.message, problem.advice)
        if problem is not None:
            _log.warning("report_refused", code=problem.code, message=problem.message)
        at = deps.clock.now().isoformat()
        self._folder.write_report_reply(ReportReply(problem is None, at, digest, message, hint))


def _choose_inputs(terms: StackTerms, given: Mapping[str, str]) -> dict[str, str]:
    """Return the values that the customer entered for the app's inputs; nothing sensitive."""
    open_names = {declared.name for declared in terms.inputs if not declared.sensitive}
    return {name: value for name, value in given.items() if name in open_names}
