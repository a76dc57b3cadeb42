"""Names in the languages of Stacks."""

import pytest

from exclave.stacks.naming import fit_name, write_camel, write_snake


@pytest.mark.parametrize(
    ("text", "camel", "snake"),
    [
        ("db_password", "DbPassword", "db_password"),
        ("DbPassword", "DbPassword", "db_password"),
        ("inst-x-provision role", "InstXProvisionRole", "inst_x_provision_role"),
        ("", "", ""),
        ("--", "", ""),
        ("S3Bucket", "S3Bucket", "s3_bucket"),
    ],
)
def test_a_text_becomes_an_identifier(text: str, camel: str, snake: str) -> None:
    assert (write_camel(text), write_snake(text)) == (camel, snake)


def test_a_name_that_fits_stays_as_it_is() -> None:
    assert fit_name("a" * 64, 64) == "a" * 64


def test_names_that_are_too_long_stay_different_and_fit() -> None:
    first, second = fit_name("a" * 64 + "b", 64), fit_name("a" * 64 + "c", 64)

    assert first != second
    assert (len(first), len(second)) == (64, 64)
    assert first.startswith("a" * 55)
