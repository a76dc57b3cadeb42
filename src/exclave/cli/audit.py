"""`exclave audit`: the audit log of the org."""

from exclave.cli.deps import Session, verb
from exclave.cli.installs.text import show_labels
from exclave.cli.lookup import gather, page_options
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup

group = SuggestingGroup("audit", help="Show the audit log: who did what, and why.")


@verb(group, "list")
@page_options
async def list_audit(session: Session, limit: int, cursor: str | None) -> None:
    """List audit entries, newest first."""
    page = await gather(session, session.client.audit.list, limit, cursor)
    rows = [
        [show_time(entry.at), entry.actor, entry.action, entry.subject, show_labels(entry.detail)]
        for entry in page.items
    ]
    table = session.out.table(["AT", "ACTOR", "ACTION", "SUBJECT", "DETAIL"], rows)
    session.out.show(page, table)
