"""The runner's own log and audit trail reach the customer's log store, or say what was lost."""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from exclave.base.logs import Log
from exclave.runner.cloud.audit_tail import AuditTail
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.cloud.imds import Machine
from exclave.runner.cloud.log_stores import LogLine, LogPlace
from exclave.runner.cloud.own_log import OwnLog
from exclave.runner.loops.log_shipping import LogShipper
from exclave.wire.jobs import JsonValue
from tests.unit.runner.cloud.cloud_kit import read_document
from tests.unit.runner.harness import RunnerHarness, run_scenario

T = TypeVar("T")
_log = Log("test.shipping")


class Store:
    """A log store that can be down, or refuse what it is sent."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {"runner": [], "audit": []}
        self.places: set[LogPlace] = set()
        self.problem: CloudRefused | None = None
        self.tries = 0

    async def write(self, place: LogPlace, lines: Sequence[LogLine]) -> None:
        self.tries += 1
        if self.problem is not None:
            raise self.problem
        self.places.add(place)
        self.lines[place.kind] += [line.text for line in lines]

    def list_events(self, kind: str) -> list[JsonValue]:
        return [json.loads(line)["event"] for line in self.lines[kind]]


@pytest.fixture
def own() -> Iterator[OwnLog]:
    handler, root = OwnLog(), logging.getLogger()
    root.addHandler(handler)
    before = root.level
    root.setLevel("INFO")
    yield handler
    root.setLevel(before)
    root.removeHandler(handler)


async def run_here(work: Callable[[], T], /) -> T:
    """Run work in the event loop, since virtual time knows no threads."""
    return work()


async def read_machine() -> Machine:
    return Machine("i-1")


def ship(house: RunnerHarness, own: OwnLog, log: str = "/exclave/acme") -> Store:
    """Let the next runner of a house ship its log."""
    store = Store()
    document = read_document(log=log)
    shipper = LogShipper(store, lambda: document, read_machine, own, run_here)
    house.duties, house.leave = [shipper.run], shipper.finish
    return store


def test_log_and_audit_arrive_within_seconds_and_the_end_with_the_stop(
    tmp_path: Path, own: OwnLog
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        store = ship(house, own)
        runner, task = house.start()
        house.control.add_job()
        await house.clock.sleep(3)
        _log.warning("something_odd", token="tok")
        await house.clock.sleep(3)
        soon = store.list_events("runner")
        _log.info("last_words")
        await house.stop(runner, task)

        assert "something_odd" in soon
        assert store.list_events("runner")[-1] == "last_words"
        trail = (house.config.data / "audit.jsonl").read_text().splitlines()
        assert store.lines["audit"] == trail[:-1]  # that it stopped is written last of all
        assert {(p.reference, p.machine) for p in store.places} == {("/exclave/acme", "i-1")}

    run_scenario(tmp_path, scenario)


def test_a_store_that_is_down_is_noted_once_asked_seldom_and_gets_everything_later(
    tmp_path: Path, own: OwnLog
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        store = ship(house, own)
        store.problem = CloudRefused("AccessDeniedException", status=400)
        runner, task = house.start()
        await house.clock.sleep(3600)
        tries = store.tries
        job = house.control.add_job()
        await house.clock.sleep(30)
        worked = house.control.result_of(job) is not None
        store.problem = None
        await house.clock.sleep(310)
        await house.stop(runner, task)

        assert worked
        assert tries < 25
        assert store.list_events("runner").count("logs_not_shipped") == 1
        assert "logs_shipped_again" in store.list_events("runner")
        assert store.list_events("audit")[0] == "started"
        assert store.list_events("audit").count("logs_not_shipped") == 1

    run_scenario(tmp_path, scenario, lasts_s=1.0)


def test_after_a_restart_no_entry_of_the_audit_is_missing_or_sent_twice(
    tmp_path: Path, own: OwnLog
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        first = ship(house, own)
        _, task = house.start()
        await house.clock.sleep(6)
        await house.crash(task)
        second = ship(house, own)
        runner, task = house.start()
        await house.clock.sleep(6)
        await house.stop(runner, task)

        trail = (house.config.data / "audit.jsonl").read_text().splitlines()
        assert [*first.lines["audit"], *second.lines["audit"]] == trail[:-1]
        assert len(first.lines["audit"]) > 1

    run_scenario(tmp_path, scenario)


def test_without_a_store_nothing_is_sent(tmp_path: Path, own: OwnLog) -> None:
    async def scenario(house: RunnerHarness) -> None:
        store = ship(house, own, log="")
        runner, task = house.start()
        await house.clock.sleep(20)
        await house.stop(runner, task)

        assert store.tries == 0

    run_scenario(tmp_path, scenario)


def test_what_a_store_never_accepts_is_given_up_and_counted(tmp_path: Path, own: OwnLog) -> None:
    async def scenario(house: RunnerHarness) -> None:
        store = ship(house, own)
        store.problem = CloudRefused("InvalidParameterException: too old", status=400)
        runner, task = house.start()
        _log.info("never_accepted")
        await house.clock.sleep(6)
        store.problem = None
        await house.clock.sleep(6)
        await house.stop(runner, task)

        assert "never_accepted" not in store.list_events("runner")
        assert store.list_events("runner")[0] == "lines_lost"
        assert json.loads(store.lines["runner"][0])["count"] >= 2

    run_scenario(tmp_path, scenario)


def test_secrets_are_masked_and_endless_lines_are_cut(tmp_path: Path, own: OwnLog) -> None:
    async def scenario(house: RunnerHarness) -> None:
        store = ship(house, own)
        runner, task = house.start()
        await house.clock.sleep(1)
        _log.info("leaked", value=house.control.newest)
        _log.info("endless", value="x" * 100_000)
        await house.clock.sleep(6)
        await house.stop(runner, task)

        text = "\n".join(store.lines["runner"])
        assert max(map(len, store.lines["runner"])) < 40_000
        assert '"event":"line_too_long"' in text
        assert '"value": "***"' in text
        assert house.control.newest not in text

    run_scenario(tmp_path, scenario)


def test_the_oldest_lines_are_lost_first_and_batches_are_bounded() -> None:
    own = OwnLog(most_bytes=2000)
    for number in range(100):
        own.handle(logging.LogRecord("x", logging.INFO, "", 0, f"event_{number}", None, None))

    batch = own.remove_batch(500, 1000)
    rest = own.remove_batch(10_000, 1000)

    events = [json.loads(line.text)["event"] for line in (*batch, *rest)]
    lost = json.loads(batch[0].text)["count"]
    assert events == ["lines_lost", *(f"event_{number}" for number in range(lost, 100))]
    assert sum(len(line.text) for line in batch[1:]) <= 500
    assert own.remove_batch(10_000, 1000) == []


def test_a_batch_of_the_audit_is_bounded_in_bytes_lines_and_time(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    began = datetime(2026, 11, 1, tzinfo=UTC)
    ats = [began, began, began, began + timedelta(hours=24)]
    rows = [json.dumps({"at": at.isoformat(), "seq": seq}) for seq, at in enumerate(ats)]
    file.write_text("".join(f"{row}\n" for row in rows) + '{"torn')
    tail = AuditTail(file)

    batches = []
    for _ in range(5):
        lines, end = tail.read_batch(10_000, 2)
        tail.mark(end)
        batches.append([line.text for line in lines])

    assert batches == [rows[:2], rows[2:3], rows[3:], [], []]
    assert AuditTail(file).read_batch(10_000, 2)[0] == []
    assert [line.text for line in AuditTail(file).read_batch(10_000, 2)[0]] == []
    file.write_text(f"{rows[0]}\n")
    assert [line.text for line in AuditTail(file).read_batch(10_000, 2)[0]] == rows[:1]
