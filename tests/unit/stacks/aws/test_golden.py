"""What customers get changes only on purpose: a reviewer sees the difference in the kept files."""

import pytest

from tests.unit.stacks.aws.golden_kit import KEPT, read, render


@pytest.mark.parametrize("variant", KEPT)
def test_the_files_of_a_stack_are_those_that_were_reviewed(variant: str) -> None:
    kept, now = read(variant), render(variant)

    assert sorted(kept) == sorted(now)
    changed = [name for name in now if kept[name] != now[name]]
    assert changed == [], "read the change, then run `python -m tests.unit.stacks.aws.golden_kit`"
