"""The page on access says what each role can cause, as the code and the matrix have it."""

import re
from collections import Counter
from collections.abc import Iterable

from exclave.domain.identity import RIGHTS, Right, Role
from tests.integration.api.matrix import ROWS
from tests.unit.docs.pages import ROOT

PAGE = (ROOT / "docs/concepts/orgs-and-access.md").read_text()
COLUMNS = ("viewer", "operator", "approver", "admin")
_CALL = re.compile(r"^\| [^|]+ \| `([A-Z]+ [^`]+)` \|(.*)\|$", re.MULTILINE)


def test_the_table_of_roles_is_what_the_code_grants() -> None:
    told = {}
    for role in Role:
        found = re.search(rf"^\| `{role}` \|(.*)\|$", PAGE, re.MULTILINE)
        assert found is not None
        told[role] = [cell.strip() == "yes" for cell in found[1].split("|")]

    assert told == {role: [right in RIGHTS[role] for right in Right] for role in Role}


def test_the_table_of_calls_names_every_call_that_changes_something_and_who_may() -> None:
    """Calls that appear several times, for several cases, stand in the order of the matrix."""
    told = number(
        (call, tuple(cell.strip() == "yes" for cell in cells.split("|")))
        for call, cells in _CALL.findall(PAGE)
    )
    tested = number(
        (f"{row.method} {row.route}", tuple(row.expected[each] < 400 for each in COLUMNS))
        for row in ROWS
        if row.app == "control" and row.method != "GET"
    )

    assert told == tested


def number(
    rows: Iterable[tuple[str, tuple[bool, ...]]],
) -> dict[tuple[str, int], tuple[bool, ...]]:
    """Tell the cases of one call apart by counting them."""
    seen: Counter[str] = Counter()
    found = {}
    for call, may in rows:
        found[call, seen[call]] = may
        seen[call] += 1
    return found
