"""Four eyes: in an org that asks for it, no change rests on the word of one person. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from exclave.base.errors import Forbidden
from exclave.domain.identity import AccountId, User

NOBODY = ""
"""The person behind what no person of the org began: a schedule, the customer's Stack."""
REQUEST_LIFE = timedelta(hours=24)
"""How long a request to switch four eyes off waits for a second admin."""


class SecondPersonNeeded(Forbidden):
    """The org asks for two people, and this would be one."""

    code = "second_person_needed"
    hint = "Ask somebody else with the right to approve; `exclave orgs four-eyes status` says why."


@dataclass(frozen=True, slots=True)
class Author:
    """Who stands behind a workflow or a config, as far as it was stored."""

    name: str
    person: str | None = None
    """None for what was stored before persons were; then the name has to do."""
    token: str | None = None

    @classmethod
    def of(cls, user: User) -> "Author":
        """Name the caller."""
        return cls(user.name, user.person, user.token)


def is_author(user: User, author: Author) -> bool:
    """Tell whether the caller is the person behind something, under whatever token."""
    if author.person is None:
        return author.name == user.name
    return user.person == author.person or user.token == author.token


def find_person(maker: User, account: AccountId, *, four_eyes: bool) -> AccountId | None:
    """Find whom a new token counts as; None is its own account.

    With four eyes, a token for somebody else counts as its maker until a second admin confirms
    it: nobody makes themselves a second person. A token of one's own account is never more than
    the token that made it.
    """
    if account == maker.account:
        return maker.acts_as
    return maker.person if four_eyes else None


def needs_script_gate(starter: Author, author: Author, adopter: str | None) -> bool:
    """Tell whether scripts of a workflow wait for somebody's word, with four eyes.

    What a person starts always does. What starts by itself does if only the author of the config
    has put it on the install: nobody else has ever agreed to its scripts.
    """
    if starter.person != NOBODY:
        return True
    return author.person is not None and author.person == adopter


class Switched(StrEnum):
    """What a wish to switch four eyes comes to."""

    ON = "on"
    OFF = "off"
    REQUESTED = "requested"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Switch:
    """Whether four eyes are on, and who wants them off."""

    on: bool
    off_by: str | None = None
    off_at: datetime | None = None

    def is_requested(self, now: datetime) -> bool:
        """Tell whether a request to switch it off waits for a second admin."""
        fresh = self.off_at is not None and now - self.off_at < REQUEST_LIFE
        return self.on and self.off_by is not None and fresh


def decide_switch(switch: Switch, person: str, *, on: bool, now: datetime) -> Switched:
    """Decide what a wish does: switching on takes one admin, switching off takes two."""
    if on:
        same = switch.on and not switch.is_requested(now)
        return Switched.UNCHANGED if same else Switched.ON
    if not switch.on:
        return Switched.UNCHANGED
    if not switch.is_requested(now):
        return Switched.REQUESTED
    return Switched.UNCHANGED if switch.off_by == person else Switched.OFF
