"""The configuration of a runner process, built from its settings."""

from dataclasses import dataclass
from pathlib import Path

from exclave.client.transport import Link


@dataclass(frozen=True, slots=True)
class RunnerConfig:
    """The runner's settings; proxy and CA bundle also reach its children."""

    data: Path
    """The data folder: identity, outbox, executions, audit. One process at a time."""
    runner_url: str
    """The address of the Runner API."""
    name: str = "runner"
    capacity: int = 4
    """How many jobs may run at once."""
    proxy: str | None = None
    ca_bundle: Path | None = None
    secrets_file: Path | None = None
    run_as: str = ""
    """Whom jobs run as: a user, a range of uids with one for each, or `auto`; empty: the runner."""
    why_not_isolated: str = ""
    """Why jobs run as the runner itself, if they do."""
    jobs_folder: Path | None = None
    """Where executions and tools are, if not in the data folder: users of jobs must get there."""
    max_hold_s: float = 3600.0
    """The longest that a poll may be held; the control plane does so in big fleets only."""
    keep_free_bytes: int = 256 << 20
    """With less free space than this no new work is taken."""
    reserve_bytes: int = 8 << 20
    """Kept in a file and given up when the disk is full, so that results can still be written."""
    ship_logs_s: float = 120.0
    """How long a result waits for its log while the control plane answers."""
    shutdown_s: float = 20.0
    """How long a stopping runner tries to hand in its last results."""
    max_results_waiting: int = 500
    """With more undelivered results than this no new work is taken."""

    @property
    def executions(self) -> Path | None:
        """The folder of executions, if it is not in the data folder."""
        return None if self.jobs_folder is None else self.jobs_folder / "executions"

    @property
    def link(self) -> Link:
        """How the control plane is reached."""
        return Link(self.runner_url, proxy=self.proxy, ca_bundle=self.ca_bundle)
