"""What customers get changes only on purpose: a reviewer sees the difference in the kept files."""

from tests.unit.stacks.gcp.golden_kit import read, render


def test_the_files_of_a_stack_are_those_that_were_reviewed() -> None:
    kept, now = read(), render()

    assert sorted(kept) == sorted(now)
    changed = [name for name in now if kept[name] != now[name]]
    assert changed == [], "read the change, then run `python -m tests.unit.stacks.gcp.golden_kit`"
