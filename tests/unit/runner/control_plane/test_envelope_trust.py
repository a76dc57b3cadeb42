import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from exclave.base.digests import canonical_json
from exclave.runner.audit import Audit
from exclave.runner.control_plane.envelope_trust import Judged, Trust
from exclave.runner.control_plane.identity import Identity
from exclave.runner.data_folder import DataFolder
from exclave.wire.envelope import TYPE, encode_bytes
from exclave.wire.jobs import JobKind, Reason
from exclave.wire.runner import Offer, QueueKind
from exclave.wire.specs import ScriptSpec, ScriptStep
from tests.support.virtual_time import VirtualClock, run_virtual
from tests.unit.runner.fake_control import TIMINGS, FakeControl
from tests.unit.runner.harness import RunnerHarness, run_scenario


class Court:
    """A trust store beside the control plane that it judges."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.control = FakeControl(self.clock)
        self.disk = DataFolder(folder / "data")
        self.trust = self.open()

    def open(self) -> Trust:
        identity = Identity(
            runner_id=self.control.runner_id,
            org_id=self.control.org_id,
            queue_id=self.control.queue_id,
            kind=QueueKind.INSTALL,
            generation=1,
            timings=TIMINGS,
            keys={"k1": self.control.keys[0].public_key},
        )
        audit = Audit(self.disk.audit, self.clock)
        return Trust(self.disk, identity, audit, clock=self.clock, capabilities=[JobKind.NOOP])

    def offer(self, **changes: Any) -> Offer:
        known = self.control.executions[self.control.add_job(**changes)]
        dispatch = known.dispatch
        return Offer(
            execution_id=dispatch.execution_id, epoch=dispatch.epoch, envelope=known.envelope
        )

    def sign(self, payload: object) -> str:
        head = encode_bytes(canonical_json({"alg": "EdDSA", "kid": "k1", "typ": TYPE}))
        body = encode_bytes(canonical_json(payload))
        return f"{head}.{body}.{encode_bytes(self.control.key.sign(f'{head}.{body}'.encode()))}"

    async def judge(self, *offers: Offer) -> Judged:
        return await self.trust.verify(offers, self.control.get_keys)


def in_court(folder: Path, scenario: Callable[[Court], Any]) -> Court:
    async def main() -> Court:
        court = Court(folder)
        await scenario(court)
        return court

    return run_virtual(main())


def test_a_good_envelope_is_accepted_and_its_sequence_survives_a_restart(tmp_path: Path) -> None:
    async def scenario(court: Court) -> None:
        offer = court.offer()

        first = await court.judge(offer)
        court.trust = court.open()
        second = await court.judge(offer)

        assert [one.execution_id for one in first.accepted] == [offer.execution_id]
        assert second.accepted == []
        assert "replayed" in second.refused[0].message

    in_court(tmp_path, scenario)


def test_offers_out_of_order_are_all_accepted(tmp_path: Path) -> None:
    async def scenario(court: Court) -> None:
        offers = [court.offer() for _ in range(4)]

        judged = await court.judge(*reversed(offers))

        assert [one.execution_id for one in judged.accepted] == [one.execution_id for one in offers]

    in_court(tmp_path, scenario)


FOREIGN = "_" + "0" * 26
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "another runner": ({"runner_id": f"run{FOREIGN}"}, "another runner"),
    "another org": ({"org_id": f"org{FOREIGN}"}, "another org"),
    "another queue": ({"queue_id": f"ins{FOREIGN}"}, "another queue"),
    "expired": ({"issued_after_s": -7200, "expires_after_s": -3700}, "expired"),
    "from the future": ({"issued_after_s": 120, "expires_after_s": 200}, "in the future"),
    "too long": ({"issued_after_s": 0, "expires_after_s": 3700}, "longer than an hour"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_for_this_runner_now_is_refused(tmp_path: Path, case: str) -> None:
    changes, message = CASES[case]

    async def scenario(court: Court) -> None:
        now = court.clock.now()
        facts = {
            name.replace("_after_s", "_at"): now + timedelta(seconds=value)
            if name.endswith("_after_s")
            else value
            for name, value in changes.items()
        }

        judged = await court.judge(court.offer(**facts))

        assert judged.accepted == []
        assert message in judged.refused[0].message
        assert judged.refused[0].reason is Reason.ENVELOPE_REFUSED

    in_court(tmp_path, scenario)


def test_an_unknown_field_is_refused_although_the_signature_is_good(tmp_path: Path) -> None:
    async def scenario(court: Court) -> None:
        offer = court.offer()
        dispatch = court.control.executions[offer.execution_id].dispatch
        payload = {**dispatch.model_dump(mode="json"), "run_as": "root"}

        judged = await court.judge(offer.model_copy(update={"envelope": court.sign(payload)}))

        assert judged.accepted == []
        assert "unknown" in judged.refused[0].message

    in_court(tmp_path, scenario)


def test_the_offer_and_its_envelope_must_name_the_same_execution(tmp_path: Path) -> None:
    async def scenario(court: Court) -> None:
        one, other = court.offer(), court.offer()

        judged = await court.judge(one.model_copy(update={"envelope": other.envelope}))

        assert judged.accepted == []

    in_court(tmp_path, scenario)


def test_a_kind_that_this_runner_does_not_do_is_named(tmp_path: Path) -> None:
    async def scenario(court: Court) -> None:
        spec = ScriptSpec(steps=[ScriptStep(name="a", argv=["true"])])

        judged = await court.judge(court.offer(spec=spec))

        assert judged.refused[0].reason is Reason.KIND_UNSUPPORTED

    in_court(tmp_path, scenario)


def test_no_mutation_of_a_valid_envelope_is_accepted(tmp_path: Path) -> None:
    async def scenario(court: Court) -> None:
        offer = court.offer()
        random_ = random.Random(20260101)
        accepted = 0
        for _ in range(2000):
            data = bytearray(offer.envelope.encode())
            for _ in range(random_.randint(1, 3)):
                at = random_.randrange(len(data))
                data[at] ^= 1 << random_.randrange(7)
            text = data.decode()
            if text == offer.envelope:
                continue
            judged = await court.judge(offer.model_copy(update={"envelope": text}))
            accepted += len(judged.accepted)

        assert accepted == 0
        assert len((await court.judge(offer)).accepted) == 1

    in_court(tmp_path, scenario)


@pytest.mark.parametrize(
    "envelope", ["", "a.b.c", "x" * 1000, "\ud800.a.b", "W1tb" * 30_000 + ".a.b", "é.é.é"]
)
def test_garbage_is_refused_not_an_error(tmp_path: Path, envelope: str) -> None:
    async def scenario(court: Court) -> None:
        offer = court.offer()

        judged = await court.judge(
            Offer.model_construct(execution_id=offer.execution_id, epoch=1, envelope=envelope)
        )

        assert len(judged.refused) == 1

    in_court(tmp_path, scenario)


def test_a_chained_key_is_learnt_kept_and_audited(tmp_path: Path) -> None:
    async def scenario(court: Court) -> None:
        court.control.rotate_key()
        court.control.rotate_key()

        judged = await court.judge(court.offer())
        court.trust = court.open()
        fetched = court.control.calls["get_keys"]
        again = await court.judge(court.offer())

        assert len(judged.accepted) == len(again.accepted) == 1
        assert court.control.calls["get_keys"] == fetched

    court = in_court(tmp_path, scenario)

    assert court.disk.audit.read_text().count("key_trusted") == 2


def test_a_key_that_nobody_trusted_vouches_for_is_refused(tmp_path: Path) -> None:
    async def scenario(court: Court) -> None:
        court.control.rotate_key(chained=False)

        judged = await court.judge(court.offer())

        assert judged.accepted == []
        assert "unknown key" in judged.refused[0].message

    in_court(tmp_path, scenario)


def test_a_refusal_is_reported_and_audited_and_nothing_runs(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        name = house.control.add_job(runner_id=f"run{FOREIGN}")
        runner, task = house.start()
        await house.clock.sleep(10)
        await house.stop(runner, task)

        outcome = house.control.result_of(name)
        assert outcome is not None
        assert outcome.reason is Reason.ENVELOPE_REFUSED
        assert house.executor.runs == {}
        assert house.control.renewals[-1][1].stats.envelopes_refused == 1

    assert "envelope_refused" in run_scenario(tmp_path, scenario).audit_events()
