import json

from tests.unit.cli import samples
from tests.unit.cli.fake_control import EXE, INS, JOB, Cli, FakeControl, event

PAGES = f"/v1/jobs/{JOB}/logs"


def test_a_log_is_printed_page_by_page(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", PAGES, samples.log_page(samples.record(0, "one"), complete=False))
    fake.answer("GET", PAGES, samples.log_page(samples.record(1, "two", stream=2)))

    ran = cli("logs", "tail", JOB)

    assert ran.out == "one\ntwo\n"
    assert [dict(each.url.params) for each in fake.requests] == [
        {"offset": "0"},
        {"execution": EXE, "offset": "10"},
    ]


def test_the_last_lines_are_followed_by_what_comes(cli: Cli, fake: FakeControl) -> None:
    records = [samples.record(n, f"line {n}") for n in range(5)]
    fake.answer("GET", PAGES, samples.log_page(*records))
    fake.stream(
        f"{PAGES}/stream", event("record", json.dumps(samples.record(5, "line 5"))), event("end")
    )

    ran = cli("logs", "tail", JOB, "-n", "2", "-f")

    assert ran.out == "line 3\nline 4\nline 5\n"
    assert fake.requests[-1].headers["Last-Event-ID"] == f"{EXE}:50"


def test_times_system_lines_and_gaps_are_visible(cli: Cli, fake: FakeControl) -> None:
    records = [samples.record(0, "started", stream=0), samples.record(1, "", dropped=4096)]
    fake.answer("GET", PAGES, samples.log_page(*records))

    ran = cli("logs", "tail", JOB, "--times")

    assert ran.out.splitlines() == [
        "2030-01-02T03:04:05.000Z # started",
        "2030-01-02T03:04:05.001Z [4096 bytes were dropped here]",
    ]


def test_of_escapes_in_a_log_a_terminal_gets_the_colours_and_a_pipe_nothing(
    cli: Cli, fake: FakeControl
) -> None:
    text = "\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2Jend"
    fake.answer("GET", PAGES, samples.log_page(samples.record(0, text)))

    assert cli("logs", "tail", JOB).out == "red end\n"
    assert cli("logs", "tail", JOB, terminal=True).out == "\x1b[31mred\x1b[0m end\x1b[0m\n"
    assert json.loads(cli("logs", "tail", JOB, "--json").out)["text"] == text


def test_a_search_goes_on_over_pages_without_a_match(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", "/v1/logs/search", samples.page(following="c1"))
    fake.answer("GET", "/v1/logs/search", samples.page(samples.match()))

    ran = cli("logs", "search", "bucket", "--install", INS)

    assert ran.out == f"{JOB} plan: error: no such bucket\n"
    assert dict(fake.requests[-1].url.params) == {"q": "bucket", "queue_id": INS, "cursor": "c1"}


def test_a_search_that_stops_at_its_limit_says_where_to_go_on(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", "/v1/logs/search", samples.page(samples.match(), following="c9"))

    ran = cli("logs", "search", "bucket", "--install", INS, "--limit", "1")

    assert ran.err == "There are more results: add --cursor c9\n"
