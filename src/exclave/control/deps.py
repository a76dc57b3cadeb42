"""The dependencies of use cases: built once per process, frozen, passed as an argument."""

from dataclasses import dataclass, field
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.ids import Ids
from exclave.control.attest.base import Attestors
from exclave.control.keyring import Keyring
from exclave.control.runtime.chore_metrics import ChoreTallies
from exclave.control.runtime.exhausted_quotas import ExhaustedQuotas
from exclave.control.runtime.health_watch import HealthWatch
from exclave.control.runtime.held_requests import HeldRequests
from exclave.control.runtime.log_limits import LogLimits
from exclave.control.runtime.log_turns import LogTurns
from exclave.control.runtime.loop_shares import LoopShares
from exclave.control.runtime.parked_polls import ParkedPolls
from exclave.control.runtime.postponed_steps import Postponed
from exclave.control.runtime.rates import Rates
from exclave.control.runtime.request_slots import RequestSlots
from exclave.control.runtime.sync_folders import SyncFolders
from exclave.control.runtime.template_bucket import TemplateBucket
from exclave.control.runtime.token_uses import TokenUses
from exclave.control.vault import Vault
from exclave.control.workers.pool import InlineWorkers, Workers
from exclave.domain.quotas import Quotas
from exclave.domain.timings import Timings
from exclave.storage.blobs.base import Blobs
from exclave.storage.engine.database import Database, Transactions
from exclave.storage.engine.disk import Disk
from exclave.storage.engine.hub import Hub


@dataclass(frozen=True, slots=True)
class Deps:
    """What a use case may need beside its own arguments."""

    db: Transactions
    blobs: Blobs
    hub: Hub
    clock: Clock
    ids: Ids
    keys: Keyring
    vault: Vault
    sync_folders: SyncFolders
    timings: Timings = field(default_factory=Timings)
    runner_url: str = "http://127.0.0.1:8701"
    registry_url: str = ""
    bundles: Path | None = None
    """The folder with the archives of the runner program for machines in clouds."""
    template_bucket: TemplateBucket | None = None
    """Where templates of CloudFormation are published; None if the operator named no bucket."""
    runs_stacks: bool = False
    """Whether the Stacks of installs that ask for it are run here: only `exclave dev` does."""
    chores: ChoreTallies = field(default_factory=ChoreTallies)
    parked_polls: ParkedPolls = field(default_factory=ParkedPolls)
    rates: Rates = field(default_factory=Rates)
    quotas: Quotas = field(default_factory=Quotas)
    exhausted_quotas: ExhaustedQuotas = field(default_factory=ExhaustedQuotas)
    token_uses: TokenUses = field(default_factory=TokenUses)
    health: HealthWatch = field(default_factory=HealthWatch)
    disk: Disk | None = None
    """The disk of the data folder; None where nothing is kept on one."""
    workers: Workers = field(default_factory=InlineWorkers)
    held_by_users: HeldRequests = field(default_factory=HeldRequests)
    """Requests to the Control API that occupy a connection."""
    held_by_runners: HeldRequests = field(default_factory=HeldRequests)
    """The same for the Runner API and the registry."""
    request_slots: RequestSlots = field(default_factory=RequestSlots)
    """Requests of an org that are received and worked on."""
    loop_slots: RequestSlots = field(default_factory=RequestSlots)
    """Those of them that are worked on, on the event loop that all orgs share."""
    loop_shares: LoopShares = field(default_factory=lambda: LoopShares(RequestSlots()))
    postponed: Postponed = field(default_factory=Postponed)
    log_limits: LogLimits = field(default_factory=LogLimits)
    log_turns: LogTurns = field(default_factory=LogTurns)
    attestors: Attestors = field(default_factory=Attestors)
    """The clouds whose machines may enrol by attestation; none unless the operator says so."""


@dataclass(frozen=True, slots=True)
class ServerDeps(Deps):
    """The dependencies of a process that opened the database itself, and closes it at the end."""

    db: Database
