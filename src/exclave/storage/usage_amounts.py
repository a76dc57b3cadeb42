"""Accounts of what orgs store, and the amounts in them."""

from typing import NamedTuple

from exclave.domain.identity import OrgId
from exclave.domain.quotas import Stored


class Account(NamedTuple):
    """What is counted together: a kind of things of an org, or of one of its installs."""

    org: OrgId
    kind: Stored
    scope: str = ""


class Amount(NamedTuple):
    """How much of it."""

    bytes: int = 0
    items: int = 0
