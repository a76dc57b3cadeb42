import pytest

from exclave.appconfig.model.formats import FORMATS, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5m", 300), ("1h30m", 5400), ("1.5s", 1.5), ("90s", 90), ("250ms", 0.25), ("0", 0), ("+1h", 3600)],
)  # fmt: skip
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "5min", "-5m", "1h-3m", "5m "])
def test_other_texts_are_no_durations(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("form", "good"),
    [
        ("duration", "1h"),
        ("cron", "*/15 0-6,12 1 jan mon-fri"),
        ("cron", "0 0 * * 7"),
        ("cron", "@daily"),
        ("cron", "@every 1h"),
        ("name", "my_name.2"),
        ("release", "my-api"),
        ("version", "1.2.3-rc1"),
        ("terraform_version", "1.11.3"),
        ("url", "https://example.com/x"),
        ("colour", "#fff"),
        ("regex", "^docs/"),
    ],
)
def test_what_fits_a_form_is_accepted(form: str, good: str) -> None:
    assert FORMATS[form](good) is None


@pytest.mark.parametrize(
    ("form", "bad"),
    [
        ("duration", "61m"),
        ("duration", "soon"),
        ("cron", "* * * *"),
        ("cron", "60 * * * *"),
        ("cron", "5-1 * * * *"),
        ("cron", "*/0 * * * *"),
        ("cron", "1-2-3 * * * *"),
        ("cron", "a * * * *"),
        ("cron", "@every never"),
        ("cron", "²  * * * *"),
        ("name", "Name"),
        ("name", "nuon_component_override_v1_x"),
        ("name", "my-name"),
        ("release", "My-Api"),
        ("release", "-api-x"),
        ("release", "api"),
        ("release", "r" * 54),
        ("version", "latest"),
        ("terraform_version", "1.5.0"),
        ("url", "example.com"),
        ("colour", "orange"),
        ("regex", "("),
    ],
)
def test_what_does_not_comes_with_a_remedy(form: str, bad: str) -> None:
    flaw = FORMATS[form](bad)

    assert flaw is not None
    assert flaw.message


def test_a_release_name_that_helm_refuses_is_an_error() -> None:
    assert FORMATS["release"]("r" * 53) is None
    flaw = FORMATS["release"]("r" * 54)
    assert flaw is not None
    assert (flaw.warning, flaw.code) == (False, "bad_name")
