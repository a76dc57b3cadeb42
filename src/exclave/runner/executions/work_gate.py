"""Whether new jobs are accepted: not before the customer's wishes are known, or while retiring."""

from dataclasses import dataclass


@dataclass(slots=True)
class WorkGate:
    """Closed for a reason, or open; running jobs go on."""

    closed_because: str = ""
    retiring_because: str = ""
    """Why the runner waits for its last jobs, to be restarted."""

    @property
    def is_open(self) -> bool:
        """Whether new jobs may be accepted."""
        return not (self.closed_because or self.retiring_because)

    @property
    def why_closed(self) -> str:
        """Why no jobs are accepted."""
        return self.closed_because or self.retiring_because
