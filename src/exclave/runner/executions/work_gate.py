"""Whether new jobs are accepted: closed while the runner does not know what the customer wants."""

from dataclasses import dataclass


@dataclass(slots=True)
class WorkGate:
    """Closed for a reason, or open; running jobs go on."""

    closed_because: str = ""

    @property
    def is_open(self) -> bool:
        """Whether new jobs may be accepted."""
        return not self.closed_because
