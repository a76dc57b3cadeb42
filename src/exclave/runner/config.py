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
    """The user of jobs: a name, a range of uids (one per job), `auto`; empty: the runner's own."""
    why_not_isolated: str = ""
    """Why jobs run as the runner itself, if they do."""
    jobs_folder: Path | None = None
    """The folder of executions and tools, if job users cannot enter the data folder."""
    max_hold_s: float = 3600.0
    """The longest time that a poll may be held; only used in big fleets."""
    keep_free_bytes: int = 256 << 20
    """With less free space than this, no new jobs are accepted."""
    reserve_bytes: int = 8 << 20
    """The size of a file that is deleted when the disk is full, so that results can be written."""
    ship_logs_s: float = 120.0
    """How long a result waits for its log while the control plane responds."""
    shutdown_s: float = 20.0
    """How long a stopping runner tries to deliver its last results."""
    max_results_waiting: int = 500
    """With more undelivered results than this, no new jobs are accepted."""

    @property
    def executions(self) -> Path | None:
        """The folder of executions, if it is not in the data folder."""
        return None if self.jobs_folder is None else self.jobs_folder / "executions"

    @property
    def link(self) -> Link:
        """The connection settings for the control plane."""
        return Link(self.runner_url, proxy=self.proxy, ca_bundle=self.ca_bundle)
