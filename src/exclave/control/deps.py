"""What use cases are given: handed in once, frozen, no globals."""

from dataclasses import dataclass, field

from exclave.base.clock import Clock
from exclave.base.ids import Ids
from exclave.control.fleet import Fleet
from exclave.control.keys import Keyring
from exclave.control.rates import Rates
from exclave.control.vault import Vault
from exclave.domain.timings import Timings
from exclave.storage.blobs.base import Blobs
from exclave.storage.database import Database
from exclave.storage.hub import Hub


@dataclass(frozen=True, slots=True)
class Deps:
    """The control plane's parts."""

    db: Database
    blobs: Blobs
    hub: Hub
    clock: Clock
    ids: Ids
    keys: Keyring
    vault: Vault
    timings: Timings = field(default_factory=Timings)
    runner_url: str = "http://127.0.0.1:8701"
    registry_url: str = ""
    runs_stacks: bool = False
    """Whether the Stacks of installs that ask for it are run here: only `exclave dev` does."""
    fleet: Fleet = field(default_factory=Fleet)
    rates: Rates = field(default_factory=Rates)
