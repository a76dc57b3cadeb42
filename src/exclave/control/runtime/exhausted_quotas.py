"""Orgs that have exhausted a quota, as this server last counted; checked without a query."""

from collections import Counter
from collections.abc import Mapping

from exclave.domain.identity import OrgId
from exclave.domain.quotas import Counted, QuotaExceeded, Quotas, Stored

_STOPS_WORK = (Stored.TF_STATES, Stored.DOCUMENTS, Stored.LOGS)
"""Running jobs may always store these, so an org that exceeds them starts no more workflows."""


class ExhaustedQuotas:
    """The workflows of each org at the last count (every few seconds), plus those started since.

    Servers do not see each other's workflows until the next count, so together they may exceed the
    limit of running workflows by as many as begin in that time.
    """

    def __init__(self) -> None:
        self._running: Mapping[OrgId, int] = {}
        self._begun: Counter[OrgId] = Counter()
        self._over: Mapping[str, QuotaExceeded] = {}

    def replace(self, running: Mapping[OrgId, int], over: Mapping[str, QuotaExceeded]) -> None:
        """Replace the counts by fresh ones."""
        self._running, self._over = running, over
        self._begun.clear()

    def begin_work(self, quotas: Quotas, org: OrgId) -> None:
        """Count a workflow that is about to start; `QuotaExceeded` if the org may start none."""
        problem = self._over.get(org)
        if problem is not None:
            raise problem.with_traceback(None)  # it is raised often, and remembers each time
        running = self._running.get(org, 0) + self._begun[org]
        if quotas.workflows and running >= quotas.workflows:
            raise QuotaExceeded(
                f"the org has {running} workflows that have not ended; {quotas.workflows} are"
                " allowed",
                hint="Wait until some have ended, or cancel some.",
                quota=str(Counted.WORKFLOWS),
                limit=quotas.workflows,
            )
        self._begun[org] += 1


def stops_work(kind: str) -> bool:
    """Return whether an org that has exhausted this kind may start no more workflows."""
    return kind in _STOPS_WORK
