"""The audit log: who did what to which object."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from exclave.domain.identity import OrgId


class AuditRecord(NamedTuple):
    """An entry of the audit log, as it is stored."""

    org_id: OrgId
    id: str
    at: datetime
    actor: str
    action: str
    subject: str
    detail: Mapping[str, str]
