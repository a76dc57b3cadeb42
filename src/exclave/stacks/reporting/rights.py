"""What a role may do, in terms that all clouds share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Level(StrEnum):
    """What an action does, from the least to the most."""

    LIST = "list"
    READ = "read"
    TAGGING = "tagging"
    WRITE = "write"
    PERMISSIONS = "permissions management"


@dataclass(frozen=True, slots=True)
class ServiceRights:
    """What a role may do in one service of a cloud."""

    name: str
    """As policies write it, such as `s3`."""
    title: str
    counts: Mapping[Level, int]
    """How many actions of each level; levels without any are left out."""


@dataclass(frozen=True, slots=True)
class NamedGrant:
    """A role or policy of the cloud's own that is given by its name."""

    name: str
    meaning: str
    """What is known about it; empty if only the cloud knows."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What the policies of a role come to."""

    is_everything: bool = False
    actions: frozenset[str] = frozenset()
    """All known actions that are allowed, as the cloud writes them."""
    services: tuple[ServiceRights, ...] = ()
    named: tuple[NamedGrant, ...] = ()
    data: tuple[str, ...] = ()
    """What it can do with data, in sentences without a subject."""
    widening: tuple[str, ...] = ()
    """How it could get more rights than these, in sentences without a subject."""
    unknown: tuple[str, ...] = ()
    """Actions in its policies that the table does not have."""
    notes: tuple[str, ...] = ()
    """What limits it, in whole sentences."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A thing that can be done with certain actions."""

    sentence: str
    actions: frozenset[str] = field(default_factory=frozenset)


def write_topics(topics: tuple[Topic, ...], allowed: frozenset[str]) -> tuple[str, ...]:
    """Return the sentences of the topics that some allowed actions belong to, with the actions."""
    lines = []
    for topic in topics:
        names = sorted(topic.actions & allowed)
        if names:
            lines.append(f"{topic.sentence} ({', '.join(names)})")
    return tuple(lines)
