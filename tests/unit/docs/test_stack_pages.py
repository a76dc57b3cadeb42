"""The page about the Stack of AWS is made from the code."""

from docs.generate_stacks import PAGE, write_aws_stack


def test_the_page_of_the_stack_in_aws_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == write_aws_stack(), "run `python docs/generate_stacks.py`"
