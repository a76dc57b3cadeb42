"""The outbox: results on disk before they are reported, until they are acknowledged."""

from datetime import datetime

from exclave.base.clock import Clock
from exclave.runner.data_folder import DataFolder
from exclave.wire.model import Id, Request
from exclave.wire.runner import Count, Outcome


class WaitingResult(Request):
    """A result that the control plane has not acknowledged."""

    execution_id: Id
    epoch: Count
    outcome: Outcome
    written_at: datetime


class Outbox:
    """One file per result, synced and renamed into place."""

    def __init__(self, disk: DataFolder, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock

    def put(self, execution_id: str, epoch: int, outcome: Outcome) -> WaitingResult:
        """Store a result durably."""
        waiting = WaitingResult(
            execution_id=execution_id,
            epoch=epoch,
            outcome=outcome,
            written_at=self._clock.now(),
        )
        self._disk.write(
            self._disk.outbox / f"{execution_id}.json", waiting.model_dump_json().encode()
        )
        return waiting

    def list_waiting(self) -> list[WaitingResult]:
        """Return the results that are not delivered yet, oldest execution first."""
        files = sorted(self._disk.outbox.glob("*.json"))
        return [WaitingResult.model_validate_json(file.read_bytes()) for file in files]

    def count_waiting(self) -> int:
        """Return the number of results that are not delivered yet."""
        return sum(1 for _ in self._disk.outbox.glob("*.json"))

    def remove(self, execution_id: str) -> None:
        """Delete a result that was acknowledged or permanently refused."""
        self._disk.remove(self._disk.outbox / f"{execution_id}.json")

    def abandon(self, execution_id: str) -> None:
        """Stop retrying, but keep the file for a person to read."""
        file = self._disk.outbox / f"{execution_id}.json"
        if file.exists():
            self._disk.write(file.with_suffix(".abandoned"), file.read_bytes())
            self.remove(execution_id)
