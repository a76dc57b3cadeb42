"""The account in a cloud that an install is pinned to, over the Control API."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from exclave.domain.install_identities import PinnedBy as PinnedBy
from exclave.wire.model import Id, Reply, Request, Text

AccountText = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]*$", max_length=63)]


class CloudAccountReply(Reply):
    """Whose machine may be the runner of an install, and which one is."""

    cloud: str
    region: str
    account: str
    """AWS account, Azure subscription or GCP project; empty as long as none is known."""
    tenant: str = ""
    principal: str = ""
    """The role, service account or managed identity of its machine."""
    pinned_by: PinnedBy | None = None
    pinned_at: datetime | None = None
    needs_confirmation: bool = False
    """A code pinned the account, and no runner enrols until somebody confirms it."""
    confirmed_by: str | None = None
    confirmed_at: datetime | None = None
    runner_id: Id | None = None
    machine: str = ""
    enrolled_at: datetime | None = None
    alarm: str = ""
    """What somebody should look into, such as a try from another account."""
    alarm_at: datetime | None = None


class ConfirmAccount(Request):
    """The account that is expected: another one than the pinned one confirms nothing."""

    account: Annotated[AccountText, Field(min_length=1)]


class ResetAccount(Request):
    """Forget the pinned account, or put another in its place; the runner's identity ends."""

    reason: Annotated[Text, StringConstraints(min_length=3)]
    region: AccountText = ""
    """Empty: the region stays."""
    account: AccountText = ""
    """Empty: the next machine that comes with a one-time code decides it."""
    tenant: AccountText = ""
