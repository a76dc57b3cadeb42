"""The journal of an apply: which resources were started and finished, synced to disk."""

from exclave.runner.states.journal_file import JournalFile
from exclave.runner.terraform.messages import Message

_KINDS = frozenset({"planned_change", "apply_start", "apply_complete", "apply_errored"})


class Journal(JournalFile):
    """A journal of Terraform's messages: addresses and ids, never other values."""

    def note(self, message: Message) -> None:
        """Write a message down durably, if it is about a resource; called by the pump's thread.

        Terraform first lists everything that it plans to do. Those lines are not synced one by one:
        the first real change syncs them too.
        """
        resource = message.resource
        if message.type not in _KINDS or resource is None:
            return
        is_plan = message.type == "planned_change"
        line = {
            "type": message.type,
            "at": message.at,
            "addr": resource.address,
            "resource_type": resource.resource_type,
            "action": resource.action,
            "id_key": resource.id_key,
            "id_value": resource.id_value,
        }
        self.write(line, sync=not is_plan)
        self.events += not is_plan
