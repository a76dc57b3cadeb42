"""The journal of what a job's commands changed in a cluster."""

from exclave.runner.kube.access.proxy import Change
from exclave.runner.states.journal_file import JournalFile


class ClusterJournal(JournalFile):
    """A journal of requests: methods, paths and statuses, never bodies."""

    def note(self, change: Change) -> None:
        """Write down that a change is about to be sent, or how it was answered."""
        status = None if change.status is None else str(change.status)
        kind = "cluster_request" if status is None else "cluster_reply"
        line = {"type": kind, "method": change.method, "path": change.path, "status": status}
        self.write(line, sync=status is None)
        self.events += status is None
