"""A machine whose evidence is accepted: it pins the account if it is the first, and is a runner."""

from exclave.base.errors import Problem
from exclave.control.attest import pins
from exclave.control.attest.problems import AttestationRefused
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.dispatch.enrolment import make_runner, welcome_runner
from exclave.control.dispatch.runners import revoke_identity
from exclave.domain.identity import QueueId, RunnerId
from exclave.domain.install_identities import InstallIdentity, PinnedBy, Proof, name_runner
from exclave.domain.installs import AppInstall
from exclave.domain.runners import Enrolment, Runner, RunnerState
from exclave.storage import install_identities, queues, runner_access, runners
from exclave.storage.engine.database import Tx
from exclave.wire.attest import EnrolAttested
from exclave.wire.runner import Enrolled


def pin_first(
    tx: Tx,
    deps: Deps,
    install: AppInstall,
    identity: InstallIdentity,
    proof: Proof,
    code: Enrolment | None,
) -> InstallIdentity:
    """Return the identity with its pin; the first machine decides what was not known before."""
    if identity.principal:
        return identity
    org, by = identity.org_id, identity.pinned_by or PinnedBy.CODE
    install_identities.pin_identity(tx, org, install.id, proof, by)
    if code is not None:
        runner_access.use_enrolment(tx, org, code.id, None)
    record(
        tx,
        deps,
        org,
        pins.ATTESTATION,
        "account_pinned",
        install.id,
        account=proof.account,
        principal=proof.principal[:300],
        by=str(by),
    )
    return pins.hold_identity(tx, org, install)


def admit_machine(
    tx: Tx,
    deps: Deps,
    install: AppInstall,
    identity: InstallIdentity,
    request: EnrolAttested,
    proof: Proof,
    code: Enrolment | None,
) -> Enrolled | Problem:
    """Return the identity of the runner: the one it has already, or a new one in its place."""
    org = identity.org_id
    before = _find_last(tx, identity)
    if before is not None and before.state is not RunnerState.ACTIVE:
        if proof.machine == identity.last_machine:
            return _refuse_machine(tx, deps, identity, before)
    elif before is not None and before.public_key == request.public_key:
        return welcome_runner(tx, deps, org, before.id)
    elif before is not None:
        _replace(tx, deps, identity, before, proof)
    queue = queues.find_queue(tx, org, QueueId(install.id))
    if queue is None:
        return AttestationRefused()
    claimed = make_runner(RunnerId(deps.ids.new("run")), queue, request)
    runner = claimed._replace(name=name_runner(proof))
    runners.add_runner(tx, runner)
    if code is not None:
        runner_access.use_enrolment(tx, org, code.id, runner.id)
    install_identities.note_enrolment(tx, org, install.id, runner.id, proof.machine)
    record(
        tx,
        deps,
        org,
        pins.ATTESTATION,
        "runner_enrolled",
        runner.id,
        machine=proof.machine,
        account=proof.account,
    )
    pins.note_flapping(tx, deps, identity, install)
    tx.wake("installs")
    return welcome_runner(tx, deps, org, runner.id)


def _find_last(tx: Tx, identity: InstallIdentity) -> Runner | None:
    """Return the runner that enrolled last, locked."""
    if identity.runner_id is None:
        return None
    return runners.find_runner(tx, identity.org_id, identity.runner_id, lock=True)


def _replace(tx: Tx, deps: Deps, identity: InstallIdentity, before: Runner, proof: Proof) -> None:
    """Revoke the runner of the machine before; its jobs end by the usual rules for silence."""
    revoke_identity(tx, before, RunnerState.REVOKED, f"replaced by {proof.machine}")
    machines = {"machine": proof.machine, "before": identity.last_machine}
    actor = pins.ATTESTATION
    record(tx, deps, identity.org_id, actor, "runner_replaced", before.id, **machines)


def _refuse_machine(tx: Tx, deps: Deps, identity: InstallIdentity, before: Runner) -> Problem:
    """Refuse a machine whose runner somebody has revoked: it does not come back by itself."""
    why = {"reason": "machine", "detail": f"its runner was {before.state}: {before.state_reason}"}
    actor, subject = pins.ATTESTATION, identity.install_id
    record(tx, deps, identity.org_id, actor, "attestation_refused", subject, **why)
    return AttestationRefused()
