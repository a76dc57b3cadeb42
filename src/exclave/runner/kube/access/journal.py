"""The journal of what a job changes in a cluster: by requests of its commands, and by itself."""

from exclave.runner.kube.access.proxy import Change
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.states.journal_file import JournalFile


class ClusterJournal(JournalFile):
    """A journal of requests and objects: methods, paths, statuses and names, never bodies."""

    def note_request(self, change: Change) -> None:
        """Write down that a command's request is about to be sent, or how it was answered."""
        status = None if change.status is None else str(change.status)
        kind = "cluster_request" if status is None else "cluster_reply"
        line = {"type": kind, "method": change.method, "path": change.path, "status": status}
        self.write(line, sync=status is None)
        self.events += status is None

    def note_object(self, action: str, object_id: ObjectId) -> None:
        """Write down a change that the runner is about to make itself."""
        self.write({"type": f"object_{action}", "object": object_id.address})
        self.events += 1
