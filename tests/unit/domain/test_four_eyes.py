"""Who counts as whom, and what it takes to switch four eyes."""

from datetime import UTC, datetime

import pytest

from exclave.domain.four_eyes import (
    NOBODY,
    REQUEST_LIFE,
    Author,
    Switch,
    Switched,
    decide_switch,
    find_person,
    is_author,
    needs_script_gate,
)
from exclave.domain.identity import AccountId, OrgId, TokenId, User

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ADA = User(OrgId("org"), AccountId("acc_ada"), "ada", TokenId("tok_1"), ())
PUPPET = User(OrgId("org"), AccountId("acc_x"), "x", TokenId("tok_2"), (), AccountId("acc_ada"))


@pytest.mark.parametrize(
    ("author", "same"),
    [
        (Author("ada", "acc_ada", "tok_9"), True),
        (Author("ada", "acc_bob", "tok_9"), False),
        (Author("bob", "acc_bob", "tok_1"), True),
        (Author("ada"), True),
        (Author("bob"), False),
        (Author("ada", NOBODY), False),
    ],
)
def test_a_person_is_known_by_id_or_token_and_by_name_only_in_old_rows(
    author: Author, same: bool
) -> None:
    assert is_author(ADA, author) is same


def test_a_token_that_nobody_vouched_for_counts_as_its_maker() -> None:
    bob = AccountId("acc_bob")

    assert find_person(ADA, bob, four_eyes=True) == "acc_ada"
    assert find_person(ADA, bob, four_eyes=False) is None
    assert find_person(ADA, ADA.account, four_eyes=True) is None
    assert find_person(PUPPET, PUPPET.account, four_eyes=False) == "acc_ada"
    assert find_person(PUPPET, bob, four_eyes=True) == "acc_ada"
    assert is_author(PUPPET, Author.of(ADA))


def test_scripts_that_start_by_themselves_ask_if_one_person_stands_behind_them() -> None:
    clock, ada = Author("schedule", NOBODY), Author.of(ADA)

    assert needs_script_gate(clock, ada, "acc_ada")
    assert not needs_script_gate(clock, ada, "acc_bob")
    assert not needs_script_gate(clock, Author("old"), None)
    assert needs_script_gate(ada, ada, "acc_bob")


@pytest.mark.parametrize(
    ("switch", "on", "done"),
    [
        (Switch(on=False), True, Switched.ON),
        (Switch(on=False), False, Switched.UNCHANGED),
        (Switch(on=True), True, Switched.UNCHANGED),
        (Switch(on=True), False, Switched.REQUESTED),
        (Switch(on=True, off_by="acc_ada", off_at=NOW), False, Switched.UNCHANGED),
        (Switch(on=True, off_by="acc_bob", off_at=NOW), False, Switched.OFF),
        (Switch(on=True, off_by="acc_bob", off_at=NOW), True, Switched.ON),
        (Switch(on=True, off_by="acc_bob", off_at=NOW - REQUEST_LIFE), False, Switched.REQUESTED),
    ],
)
def test_off_takes_two_persons_within_a_day(switch: Switch, on: bool, done: Switched) -> None:
    assert decide_switch(switch, "acc_ada", on=on, now=NOW) is done
