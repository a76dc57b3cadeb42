"""Reports from machines in clouds: what is applied, whether it is the right thing, and its end."""

from exclave.base.errors import Conflict, NotFound
from exclave.base.json_values import JsonObject
from exclave.control.attest import pins
from exclave.control.deps import Deps
from exclave.control.install_state.state import write_state
from exclave.control.installs.inputs import store_customer_inputs
from exclave.control.job_specs.rendering import Renderings
from exclave.control.progress.stack_waits import answer_waits, try_again
from exclave.control.stack_versions.versions import refresh_version
from exclave.control.stacks.report_limits import limit_changes
from exclave.control.stacks.terms import build_outputs, find_owed, list_inputs
from exclave.domain.clouds import CloudPlace, write_cloud_account
from exclave.domain.identity import RunnerIdentity
from exclave.domain.install_identities import InstallIdentity
from exclave.domain.install_state import StateDocument
from exclave.domain.installs import AppInstall
from exclave.domain.stacks import StackState, StackTerms, StackVersion
from exclave.stacks.registry import CloudStack, find_cloud_stack
from exclave.storage import installs, stacks
from exclave.storage.engine.database import Tx
from exclave.wire.stacks import Leaving, StackProgress, StackReport

_ACCOUNTS = ("account_id", "subscription_id", "project_id")
_REGIONS = ("region", "resource_group_location", "location")
_BEACONS = 20 / 60
"""Messages per second about the machine of one install."""
_BEACON_BURST_S = 60.0
_TIMES = "%Y-%m-%dT%H:%M:%S+00:00"


class StackMismatch(Conflict):
    """A Stack reports that it is elsewhere, or that it is another one."""

    code = "stack_mismatch"
    hint = "Compare the account and region of the Stack with `exclave installs get`."


def store_cloud_report(
    tx: Tx,
    deps: Deps,
    who: RunnerIdentity,
    install: AppInstall,
    terms: StackTerms,
    report: StackReport,
    texts: Renderings,
) -> None:
    """Store what the Stack of an install in a cloud reports, in the transaction of the caller."""
    stack = _get_stack(install)
    _check_place(pins.find_identity(tx, who.org, install), report)
    version = _find_applied(tx, who, install, report)
    before = stacks.find_run(tx, who.org, install.id)
    store_customer_inputs(tx, deps, who.org, install.id, list_inputs(terms, report), who.name)
    refresh_version(tx, deps, who.org, install.id, texts)
    owed = find_owed(terms, report)
    facts = stack.read_facts({**report.facts, "region": install.place.region})
    made = build_outputs(facts, terms, report)
    outputs = {**made, **report.outputs, "install_inputs": made["install_inputs"]}
    state = _choose_state(report, owed)
    _store_version(tx, who, install, version, report, state, outputs, owed)
    _store_state(tx, who, install, state, outputs, owed)
    limit_changes(tx, deps, who.org, install)
    if state is StackState.ACTIVE:
        answer_waits(tx, deps, who.org, who.queue, who.name)
    if before is None or before.id != version.id:
        try_again(tx, deps, who.org, who.queue)


async def note_progress(deps: Deps, install: str, progress: StackProgress) -> None:
    """Store what somebody says who claims to be a machine of an install.

    Nothing of it is believed: it is shown while nobody runs the Stack, and forgotten. An unknown
    install is answered in the same way.
    """
    now = deps.clock.monotonic()
    deps.rates.spend("beacon", install, now, _BEACONS, burst_s=_BEACON_BURST_S)

    def note(tx: Tx) -> None:
        org = installs.find_org_of(tx, install)
        version = None if org is None else stacks.find_newest(tx, org, install)
        if org is None or version is None or version.digest is None:
            return
        beacon = {"stage": progress.stage, "note": progress.note, "at": tx.now.strftime(_TIMES)}
        stacks.store_beacon(tx, org, version.id, StackState.BOOTING, beacon)

    await deps.db.write(note, key=install)


async def note_leaving(deps: Deps, who: RunnerIdentity, leaving: Leaving) -> None:
    """Store that the machine of a Stack goes; unless another comes, the Stack is gone."""

    def note(tx: Tx) -> None:
        run = stacks.find_run(tx, who.org, who.queue)
        if run is None or run.applied_digest is None:
            raise NotFound("this runner belongs to no Stack of a cloud")
        last = {"leaving": leaving.reason, "leaving_at": tx.now.strftime(_TIMES)}
        at = run.applied_at or tx.now
        report = {**(run.report or {}), **last}
        stacks.store_applied(tx, who.org, run.id, run.applied_digest, at, report)

    await deps.db.write(note, key=who.queue)


def _get_stack(install: AppInstall) -> CloudStack:
    stack = find_cloud_stack(install.target)
    if stack is None:
        raise NotFound("this runner's install is in no cloud")
    return stack


def _check_place(identity: InstallIdentity, report: StackReport) -> None:
    """Raise `StackMismatch` if the Stack is in another account or region than the install.

    An account that nobody gave at the creation of the install is that of its first machine.
    """
    outputs = report.outputs
    for noun, wanted, names in (
        ("account", identity.account, _ACCOUNTS),
        ("region", identity.region, _REGIONS),
    ):
        given = next((str(outputs[name]).lower() for name in names if outputs.get(name)), "")
        if wanted and given and given != wanted:
            raise StackMismatch(
                f"the Stack is in the {noun} `{given[:100]}`, and the install is in `{wanted}`"
            )


def _find_applied(
    tx: Tx, who: RunnerIdentity, install: AppInstall, report: StackReport
) -> StackVersion:
    """Return the version that the customer has applied, locked with the newest one."""
    newest = stacks.find_newest(tx, who.org, install.id, lock=True)
    if newest is None:
        raise NotFound("the install has no Stack")
    if report.document is None:
        return newest
    version = stacks.find_with_digest(tx, who.org, install.id, report.document.digest)
    if version is None:
        raise StackMismatch(
            "what is applied is no version of this install's Stack",
            hint="Let the customer apply the newest one: exclave installs stack NAME",
        )
    return version


def _choose_state(report: StackReport, owed: list[str]) -> StackState:
    if not report.enabled:
        return StackState.DISABLED
    return StackState.INCOMPLETE if owed else StackState.ACTIVE


def _store_version(
    tx: Tx,
    who: RunnerIdentity,
    install: AppInstall,
    version: StackVersion,
    report: StackReport,
    state: StackState,
    outputs: JsonObject,
    owed: list[str],
) -> None:
    """Store a report with its version; the versions before it are superseded."""
    reported = {**outputs, "owed_inputs": owed} if owed else outputs
    if (version.state, version.outputs) != (state, reported):
        stacks.store_report(tx, who.org, version.id, state, reported)
        stacks.supersede(tx, who.org, install.id, keep=version.id)
        stacks.reopen_later(tx, who.org, install.id, version.version)
    facts = _list_facts(report)
    digest = report.document.digest if report.document else version.digest or ""
    if (version.applied_digest, version.report) != (digest, facts):
        at = version.applied_at or tx.now
        stacks.store_applied(tx, who.org, version.id, digest, at, facts)


def _list_facts(report: StackReport) -> JsonObject:
    """Return what a report says beside the outputs."""
    names = {"document", "roles", "mode", "enabled", "machine", "program", "secrets"}
    return report.model_dump(mode="json", include=names)


def _store_state(
    tx: Tx,
    who: RunnerIdentity,
    install: AppInstall,
    state: StackState,
    outputs: JsonObject,
    owed: list[str],
) -> None:
    """Store where templates read it what the Stack made, and the account that it is in."""
    account = next((outputs[name] for name in _ACCOUNTS if outputs.get(name)), "")
    place = install.place
    known = CloudPlace(place.region, place.account or str(account), place.tenant)

    def change(document: StateDocument) -> None:
        document["install_stack"] = {"populated": not owed, "status": state, "outputs": outputs}
        document["cloud_account"] = write_cloud_account(install.target, known)
        document["runner"]["id"] = who.runner
        document["runner"]["status"] = "active"

    write_state(tx, who.org, who.queue, "stack", change)
