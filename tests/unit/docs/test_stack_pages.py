"""The pages about the Stacks of clouds are made from the code."""

import pytest

from docs.generate_stacks import PAGES, find_page, write_page
from exclave.stacks.registry import CLOUD_STACKS


def test_every_cloud_with_a_stack_has_a_page() -> None:
    assert set(PAGES) == {str(cloud) for cloud in CLOUD_STACKS}


@pytest.mark.parametrize("cloud", PAGES)
def test_the_page_of_a_cloud_is_up_to_date(cloud: str) -> None:
    page = find_page(cloud).read_text(encoding="utf-8")

    assert page == write_page(cloud), "run `python -m docs.generate_stacks`"
