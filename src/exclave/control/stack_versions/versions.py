"""Versions of the Stacks of clouds: a new one if the customer has to apply something else."""

from datetime import datetime, timedelta

from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.job_specs.rendering import Renderings
from exclave.control.stack_versions.models import build_cloud_model
from exclave.control.stack_versions.stored_models import write_model
from exclave.domain.identity import OrgId
from exclave.domain.installs import AppInstall
from exclave.domain.stacks import StackState, StackVersion
from exclave.stacks.building.model import BuiltModel
from exclave.stacks.digest import digest_model
from exclave.stacks.registry import find_cloud_stack
from exclave.storage import app_installs, stacks
from exclave.storage.engine.database import Tx

_BACK_IN = timedelta(minutes=15)
"""A group of one brings a new machine in less time than this, if the Stack is still there."""
_SYSTEM = "control plane"
"""The actor of versions that follow from changes of inputs and configs."""


def refresh_version(tx: Tx, deps: Deps, org: OrgId, install: str, texts: Renderings) -> bool:
    """Store a new version of an install's Stack if its model changed; return whether it did.

    An install of `local` has no model. A model with errors makes no version: the vendor reads the
    errors where they ask for the Stack.
    """
    app_install = app_installs.find_app_install(tx, org, install)
    if app_install is None or find_cloud_stack(app_install.target) is None:
        return False
    built = build_cloud_model(tx, deps, org, app_install, texts)
    return built.is_ok and store_version(tx, deps, org, app_install, built)


def store_version(tx: Tx, deps: Deps, org: OrgId, install: AppInstall, built: BuiltModel) -> bool:
    """Store a model as a version unless the newest one has its digest; return whether it did."""
    digest = digest_model(built.model)
    newest = stacks.find_newest(tx, org, install.id, lock=True)
    if newest is not None and newest.digest == digest:
        return False
    if newest is not None and newest.digest is None:  # made with its install
        stacks.store_model(tx, org, newest.id, digest, write_model(built.model))
        return True
    number = 1 if newest is None else newest.version + 1
    stack = deps.ids.new("stk")
    stacks.add_version(tx, org, stack, install.id, number, install.config_id)
    stacks.store_model(tx, org, stack, digest, write_model(built.model))
    record(tx, deps, org, _SYSTEM, "stack_version_made", install.id, version=str(number))
    if newest is not None:
        _replace(tx, org, install, newest, stack, digest)
    tx.wake(f"stack:{install.id}")
    return True


def _replace(
    tx: Tx, org: OrgId, install: AppInstall, newest: StackVersion, stack: str, digest: str
) -> None:
    """Put a new version in the place of one that nobody runs, or that runs with the same model."""
    if not newest.is_run:
        stacks.set_state(tx, org, newest.id, StackState.SUPERSEDED)
    run = stacks.find_run(tx, org, install.id)
    if run is not None and run.applied_digest == digest:  # back to what the customer runs
        stacks.store_report(tx, org, stack, run.state, run.outputs)
        at = run.applied_at or tx.now
        stacks.store_applied(tx, org, stack, digest, at, run.report or {})
        stacks.supersede(tx, org, install.id, keep=stack)


def find_current(tx: Tx, org: OrgId, install: str, *, lock: bool = False) -> StackVersion | None:
    """Return the version that the customer runs, or the newest one; that is it for `local`."""
    newest = stacks.find_newest(tx, org, install, lock=lock)
    if newest is None or newest.digest is None:
        return newest
    return stacks.find_run(tx, org, install) or newest


def show_state(version: StackVersion, newest: StackVersion | None, now: datetime) -> StackState:
    """Return the state of a version as people see it: one that is run may be outdated, or gone.

    A Stack that the customer has stopped has no machine: that one went says nothing about it.
    """
    left_at = (version.report or {}).get("leaving_at")
    is_expected = version.state is not StackState.DISABLED and version.is_run
    if is_expected and left_at and now - datetime.fromisoformat(str(left_at)) > _BACK_IN:
        return StackState.REMOVED
    is_old = newest is not None and newest.version > version.version
    if is_old and version.state in {StackState.ACTIVE, StackState.INCOMPLETE}:
        return StackState.OUTDATED
    return version.state
