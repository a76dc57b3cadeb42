"""Accepting offers: verifies the envelopes, records them on disk and starts the executions."""

from collections.abc import Sequence

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.runner.control_plane.envelope_trust import Refused
from exclave.runner.executions.deps import Deps
from exclave.runner.executions.execution import finish, run_execution
from exclave.runner.executions.kill_switch import is_disabled
from exclave.runner.executions.records import write_record
from exclave.runner.executions.roster import Execution
from exclave.wire.jobs import OutcomeState
from exclave.wire.runner import Dispatch, Offer, Outcome

_log = Log("runner.accepting")


async def accept_offers(deps: Deps, offers: Sequence[Offer], free: int) -> None:
    """Accept offers that are new and correctly signed; known ones are repeats of a lost reply."""
    if is_disabled(deps.disk.path):
        _log.warning("offers_ignored", count=len(offers), reason="disabled")
        return
    if not deps.gate.is_open:
        _log.warning("offers_ignored", count=len(offers), reason=deps.gate.why_closed)
        return
    unique = {offer.execution_id: offer for offer in reversed(offers)}
    new = [offer for name, offer in reversed(unique.items()) if not _is_known(deps, name)]
    if len(new) > free:
        _log.warning("offers_ignored", count=len(new) - free)
        deps.audit.write("offers_ignored", executions=[offer.execution_id for offer in new[free:]])
    try:
        verified = await deps.trust.verify(new[:free], deps.api.get_keys)
    except (Problem, OSError) as error:
        # Neither accepted nor refused: the offers expire and are made again.
        _log.warning("offers_not_verified", error=str(error))
        return
    for dispatch in verified.accepted:
        _accept(deps, dispatch)
    for refused in verified.refused:
        _report(deps, refused)


def _is_known(deps: Deps, execution_id: str) -> bool:
    folder = deps.disk.find_execution(execution_id)
    return deps.roster.has_seen(execution_id) or folder.exists()


def _accept(deps: Deps, dispatch: Dispatch) -> None:
    try:
        folder = deps.disk.make_execution(dispatch.execution_id)
        if folder is None:
            return
        write_record(deps.disk, folder, dispatch)
    except OSError as error:
        # Nothing may run without a record on disk: the offer expires.
        _log.error("offer_not_recorded", exc=error, execution_id=dispatch.execution_id)
        return
    deps.audit.write(
        "envelope_accepted",
        execution_id=dispatch.execution_id,
        job_id=dispatch.job_id,
        sequence=dispatch.sequence,
        kind=dispatch.spec.kind,
        mutating=dispatch.mutating,
        lanes=list(dispatch.lanes),
        digest=dispatch.approved_digest,
    )
    execution = Execution(dispatch.execution_id, dispatch.epoch, dispatch.mutating, folder)
    deps.roster.add(execution)
    deps.spawn(run_execution(deps, execution, dispatch), f"execution {execution.id}")


def _report(deps: Deps, refused: Refused) -> None:
    deps.tally.envelopes_refused += 1
    folder = deps.disk.find_execution(refused.execution_id)
    execution = Execution(refused.execution_id, refused.epoch, mutating=False, folder=folder)
    deps.roster.add(execution)
    outcome = Outcome(
        state=OutcomeState.FAILED, reason=refused.reason, message=refused.message[:4000]
    )
    deps.spawn(finish(deps, execution, outcome), f"refusal {execution.id}")
