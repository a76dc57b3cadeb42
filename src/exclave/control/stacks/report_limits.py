"""Limits on reports of Stacks: changes per hour, and stored bytes."""

from datetime import timedelta

from exclave.control.deps import Deps
from exclave.control.runtime.rates import RateLimited
from exclave.domain.identity import OrgId
from exclave.domain.installs import AppInstall
from exclave.domain.quotas import QuotaExceeded, Stored
from exclave.storage import app_installs, install_states, usage
from exclave.storage.engine.database import Tx
from exclave.storage.usage import Account

_HOUR = timedelta(hours=1)
_CAUSE = "stack"
"""The cause of the one version of the install's state that a changed report makes; its inputs are
part of that version."""
_LONGEST_WAIT_S = 300


def limit_changes(tx: Tx, deps: Deps, org: OrgId, before: AppInstall) -> None:
    """Raise a `Problem` if the report of this transaction exceeds a limit.

    The error rolls the report back. A report that changed nothing is not limited. `before` is the
    install as it was when the transaction began.
    """
    after = app_installs.find_app_install(tx, org, before.id)
    if after is None or before.state_version == after.state_version:
        return
    _limit_rate(tx, deps, org, before.id)
    _limit_size(tx, deps, org, before.id)


def _limit_rate(tx: Tx, deps: Deps, org: OrgId, install: str) -> None:
    most = deps.quotas.reports_per_hour
    if not most:
        return
    newest = install_states.list_change_times(tx, org, install, _CAUSE, most + 1)
    if len(newest) > most and newest[-1] > tx.now - _HOUR:
        free_at = newest[-1] + _HOUR
        wait_s = min(_LONGEST_WAIT_S, max(1, int((free_at - tx.now).total_seconds())))
        raise RateLimited(
            f"the Stack reports changes too often: {most} per hour are allowed",
            hint="Report again later: only the newest values count.",
            limit="reports",
            retry_after_s=wait_s,
        )


def _limit_size(tx: Tx, deps: Deps, org: OrgId, install: str) -> None:
    limits = deps.quotas
    for scope, most, owner in (
        (install, limits.documents_per_install_bytes, "the install"),
        ("", limits.documents_bytes, "the org"),
    ):
        used = usage.find_usage(tx, Account(org, Stored.DOCUMENTS, scope))
        if most and used.bytes > most:
            raise QuotaExceeded(
                f"{owner} may store {most} bytes of inputs and states and has used them up",
                quota=str(Stored.DOCUMENTS),
                limit=most,
            )
