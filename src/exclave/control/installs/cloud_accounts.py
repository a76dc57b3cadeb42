"""The account that an install is pinned to: shown, confirmed, reset by people."""

from exclave.base.errors import Conflict
from exclave.control.attest import pins
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.dispatch.runners import revoke_identity
from exclave.control.installs.access import get_app_install
from exclave.domain.clouds import check_place
from exclave.domain.identity import InstallId, Right, User
from exclave.domain.install_identities import InstallIdentity
from exclave.domain.installs import AppInstall
from exclave.domain.runners import RunnerState
from exclave.domain.stacks import Cloud
from exclave.storage import install_identities, runners
from exclave.storage.engine.database import Tx
from exclave.wire.cloud_accounts import CloudAccountReply, ResetAccount


async def show_account(deps: Deps, user: User, install: InstallId) -> CloudAccountReply:
    """Show whose machine may be the runner of an install."""
    return await deps.db.read(
        lambda tx: summarise_identity(
            pins.find_identity(tx, user.org, _get(tx, user, install, Right.READ))
        )
    )


async def confirm_account(
    deps: Deps, user: User, install: InstallId, account: str
) -> CloudAccountReply:
    """Confirm the account that a one-time code pinned, so that its runner may enrol."""

    def confirm(tx: Tx) -> CloudAccountReply:
        row = _get(tx, user, install, Right.OPERATE, lock=True)
        pins.hold_identity(tx, user.org, row)
        if not install_identities.confirm_identity(tx, user.org, install, account, user.name):
            raise Conflict(
                f"the install is not pinned to `{account}`",
                hint=f"Look at it again: exclave installs account {row.name}",
            )
        record(tx, deps, user.org, user.name, "account_confirmed", install, account=account)
        return summarise_identity(pins.find_identity(tx, user.org, row))

    return await deps.db.write(confirm, key=install)


async def reset_account(
    deps: Deps, user: User, install: InstallId, body: ResetAccount
) -> CloudAccountReply:
    """Forget the pinned account, or put another in its place; end the runner's identity."""

    def reset(tx: Tx) -> CloudAccountReply:
        row = _get(tx, user, install, Right.OPERATE, lock=True)
        before = pins.hold_identity(tx, user.org, row)
        region = body.region or before.region
        place = check_place(row.target, region, body.account, body.tenant)
        _end_runner(tx, before, body.reason)
        install_identities.reset_identity(tx, user.org, install, **place._asdict())
        detail = {"before": before.account, "account": place.account, "reason": body.reason}
        record(tx, deps, user.org, user.name, "account_reset", install, **detail)
        tx.wake("installs")
        return summarise_identity(pins.find_identity(tx, user.org, row))

    return await deps.db.write(reset, key=install)


def summarise_identity(identity: InstallIdentity) -> CloudAccountReply:
    """Return the reply that shows a pin."""
    return CloudAccountReply(
        cloud=identity.cloud,
        region=identity.region,
        account=identity.account,
        tenant=identity.tenant,
        principal=identity.principal,
        pinned_by=identity.pinned_by,
        pinned_at=identity.pinned_at,
        needs_confirmation=identity.waits,
        confirmed_by=identity.confirmed_by,
        confirmed_at=identity.confirmed_at,
        runner_id=identity.runner_id,
        machine=identity.last_machine,
        enrolled_at=identity.last_at,
        alarm=identity.alarm,
        alarm_at=identity.alarm_at,
    )


def _get(tx: Tx, user: User, install: InstallId, right: Right, *, lock: bool = False) -> AppInstall:
    row = get_app_install(tx, user, install, right, lock=lock)
    if row.target is Cloud.LOCAL:
        raise Conflict(
            "a `local` install has no account of a cloud",
            hint="Its runner enrols with the one-time token of its Stack.",
        )
    return row


def _end_runner(tx: Tx, identity: InstallIdentity, reason: str) -> None:
    """Revoke the runner that enrolled last."""
    if identity.runner_id is None:
        return
    runner = runners.find_runner(tx, identity.org_id, identity.runner_id, lock=True)
    if runner is not None and runner.state is RunnerState.ACTIVE:
        revoke_identity(tx, runner, RunnerState.REVOKED, f"account reset: {reason}"[:500])
