"""Seals: opened by their key for their purpose, and for nothing else."""

import random
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.base.ids import SystemRandomness
from exclave.client.exchange import MAX_REPLY
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.sealing import SEAL_KEY, Purpose, SealBroken, Sealer
from exclave.wire.states import MAX_ATTACHMENT, MAX_HEADER, MAX_STATE

PURPOSE = Purpose("org", "queue", "component:a", "state")


@pytest.fixture
def sealer(tmp_path: Path) -> Sealer:
    return Sealer(tmp_path, SystemRandomness())


def test_sealed_bytes_open_after_a_restart(sealer: Sealer, tmp_path: Path) -> None:
    sealed = sealer.seal(b"state", PURPOSE)

    assert b"state" not in sealed
    assert Sealer(tmp_path, SystemRandomness()).unseal(sealed, PURPOSE) == b"state"
    assert stat.S_IMODE((tmp_path / SEAL_KEY).stat().st_mode) == 0o600
    assert sealer.seal(b"state", PURPOSE) != sealed


@pytest.mark.parametrize("field", ["org_id", "queue_id", "workspace", "kind"])
def test_another_purpose_does_not_open(sealer: Sealer, field: str) -> None:
    sealed = sealer.seal(b"state", PURPOSE)

    with pytest.raises(SealBroken, match="changed or swapped"):
        sealer.unseal(sealed, replace(PURPOSE, **{field: "other"}))


def test_another_key_does_not_open_and_an_older_one_still_does(
    sealer: Sealer, tmp_path: Path
) -> None:
    sealed = sealer.seal(b"state", PURPOSE)
    old = (tmp_path / SEAL_KEY).read_text()
    (tmp_path / SEAL_KEY).write_text("ab" * 32 + "\n")
    with pytest.raises(SealBroken, match="not sealed with this"):
        Sealer(tmp_path, SystemRandomness()).unseal(sealed, PURPOSE)

    (tmp_path / SEAL_KEY).write_text("ab" * 32 + "\n" + old)

    rotated = Sealer(tmp_path, SystemRandomness())
    assert rotated.unseal(sealed, PURPOSE) == b"state"
    assert rotated.seal(b"x", PURPOSE)[17:25] != sealed[17:25]


@pytest.mark.parametrize("text", ["", "xyz", "ab" * 31, "ab" * 32 + " zz"])
def test_a_damaged_key_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / SEAL_KEY).write_text(text)
    (tmp_path / SEAL_KEY).chmod(0o600)

    with pytest.raises(WorkFailed, match="damaged"):
        Sealer(tmp_path, SystemRandomness()).seal(b"x", PURPOSE)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / SEAL_KEY).write_text("ab" * 32)
    (tmp_path / SEAL_KEY).chmod(0o644)

    with pytest.raises(WorkFailed, match="chmod 600"):
        Sealer(tmp_path, SystemRandomness()).seal(b"x", PURPOSE)


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_in_peace(data: bytes) -> None:
    sealer = Sealer(Path("/nowhere"), SystemRandomness())
    sealer._keys = {b"12345678": None}  # type: ignore[dict-item]

    with pytest.raises(SealBroken):
        sealer.unseal(data, PURPOSE)


def test_large_bytes_are_compressed_before_they_are_sealed(sealer: Sealer) -> None:
    data = b'{"type": "aws_subnet", "name": "private"}' * 100_000

    sealed = sealer.seal(data, PURPOSE)

    assert len(sealed) < len(data) // 10
    assert sealer.unseal(sealed, PURPOSE) == data


def test_bytes_that_do_not_shrink_or_are_small_are_sealed_as_ever(sealer: Sealer) -> None:
    for data in (b"small" * 100, random.Random(1).randbytes(100_000)):
        sealed = sealer.seal(data, PURPOSE)

        assert sealed.startswith(b"exclave-sealed-1\n")
        assert sealer.unseal(sealed, PURPOSE) == data


@pytest.mark.parametrize("size", [100, 200_000])
def test_the_form_of_sealed_bytes_cannot_be_swapped(sealer: Sealer, size: int) -> None:
    sealed = sealer.seal(b"a" * size, PURPOSE)
    swapped = {b"1": b"2", b"2": b"1"}[sealed[15:16]]

    with pytest.raises(SealBroken, match="changed or swapped"):
        sealer.unseal(sealed[:15] + swapped + sealed[16:], PURPOSE)


def test_what_unpacks_to_too_much_is_refused(
    sealer: Sealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = sealer.seal(b"a" * 1_000_000, PURPOSE)
    monkeypatch.setattr("exclave.runner.secrets.sealing._MOST_UNPACKED", 100_000)

    with pytest.raises(SealBroken):
        sealer.unseal(sealed, PURPOSE)


def test_the_largest_state_is_small_enough_when_it_is_sealed(sealer: Sealer) -> None:
    added = len(sealer.seal(b"", PURPOSE))

    assert MAX_STATE + added <= MAX_ATTACHMENT
    assert MAX_REPLY >= MAX_ATTACHMENT + MAX_HEADER  # what was stored can be read again
