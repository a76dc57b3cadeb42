"""The four-eyes rule: in an org that enables it, every change needs a second person."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from exclave.base.errors import Forbidden
from exclave.domain.identity import AccountId, User

NOBODY = ""
"""The author of workflows that no person of the org started: a schedule, the customer's Stack."""
REQUEST_LIFE = timedelta(hours=24)
"""How long a request to switch four eyes off waits for a second admin."""


class SecondPersonNeeded(Forbidden):
    """The org requires two people, and the caller would be the only one."""

    code = "second_person_needed"
    hint = "Ask somebody else with the right to approve; `exclave orgs four-eyes status` says why."


@dataclass(frozen=True, slots=True)
class Author:
    """The stored author of a workflow or a config."""

    name: str
    person: str | None = None
    """None for rows stored before persons were recorded; then the name is compared."""
    token: str | None = None

    @classmethod
    def of(cls, user: User) -> "Author":
        """Return the caller as an author."""
        return cls(user.name, user.person, user.token)


def is_author(user: User, author: Author) -> bool:
    """Return whether the caller is the author, with any token."""
    if author.person is None:
        return author.name == user.name
    return user.person == author.person or user.token == author.token


def find_person(maker: User, account: AccountId, *, four_eyes: bool) -> AccountId | None:
    """Return the person that a new token counts as; None is its own account.

    With four eyes, a token for another account counts as its creator until a second admin
    confirms it, so that nobody can create a second person. A token for one's own account counts
    as the same person as the token that created it.
    """
    if account == maker.account:
        return maker.acts_as
    return maker.person if four_eyes else None


def needs_script_gate(starter: Author, author: Author, adopter: str | None) -> bool:
    """Return whether scripts of a workflow need an approval, with four eyes on.

    Workflows started by a person always do. Scheduled ones do if only the author of the config has
    deployed it to the install: then nobody else has agreed to its scripts.
    """
    if starter.person != NOBODY:
        return True
    return author.person is not None and author.person == adopter


class Switched(StrEnum):
    """The outcome of a request to switch four eyes on or off."""

    ON = "on"
    OFF = "off"
    REQUESTED = "requested"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Switch:
    """Whether four eyes are on, and who requested to switch them off."""

    on: bool
    off_by: str | None = None
    off_at: datetime | None = None

    def is_requested(self, now: datetime) -> bool:
        """Return whether a request to switch it off waits for a second admin."""
        fresh = self.off_at is not None and now - self.off_at < REQUEST_LIFE
        return self.on and self.off_by is not None and fresh


def decide_switch(switch: Switch, person: str, *, on: bool, now: datetime) -> Switched:
    """Return the outcome of a request: switching on takes one admin, switching off takes two."""
    if on:
        same = switch.on and not switch.is_requested(now)
        return Switched.UNCHANGED if same else Switched.ON
    if not switch.on:
        return Switched.UNCHANGED
    if not switch.is_requested(now):
        return Switched.REQUESTED
    return Switched.UNCHANGED if switch.off_by == person else Switched.OFF
