"""What a runner holds never shows in what leaves it, whether or not a job names it."""

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.base.secrets import Secret
from exclave.main.runner import build_config, collect_held
from exclave.main.settings import RunnerSettings
from exclave.runner.control_plane.identity import KEY
from exclave.runner.jobs.step_outcome import mask_outputs
from exclave.runner.logs.job_log import open_log
from exclave.runner.secrets.held import HeldSecrets
from exclave.runner.secrets.sealing import SEAL_KEY
from exclave.runner.secrets.source_credentials import FILE as SOURCE_CREDENTIALS
from exclave.wire.logs import Stream
from tests.unit.runner.work_kit import ManualClock, close_and_check, join

RAW = bytes(range(101, 133))
SEAL = bytes(range(7, 39))
PEM = "-----BEGIN KEY-----\nMIIabcdef0123456789\nzzzzzzQQQQQQ==\n-----END KEY-----\n"
PASSWORD = "registry-password-1"


@pytest.fixture
def settings(tmp_path: Path) -> RunnerSettings:
    data = tmp_path / "runner"
    data.mkdir()
    (data / KEY).write_bytes(RAW)
    (data / SEAL_KEY).write_text(SEAL.hex() + "\n")
    credential = {"prefix": "https://git.example/acme", "password": "git-password-1"}
    other = {"prefix": "git@git.example:", "private_key": PEM, "known_hosts": "git.example ssh x"}
    (data / SOURCE_CREDENTIALS).write_text(json.dumps({"credentials": [credential, other]}))
    (tmp_path / "secrets.json").write_text('{"db": "S3CRETVALUE99", "api": "another-value"}')
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    return RunnerSettings(
        runner_data=data,
        secrets_file=tmp_path / "secrets.json",
        registry_password_file=tmp_path / "password",
        enrolment="xce_one-time-token",
        proxy="http://user:pr%40xy-pass@proxy:3128",
    )


@pytest.fixture
def held(settings: RunnerSettings) -> HeldSecrets:
    return collect_held(settings, build_config(settings))


@pytest.mark.parametrize(
    "text",
    [
        "S3CRETVALUE99", "another-value", "git-password-1", "MIIabcdef0123456789", PASSWORD,
        "xce_one-time-token", "pr%40xy-pass", "pr@xy-pass", SEAL.hex(), SEAL.hex().upper(),
        base64.b64encode(SEAL).decode(), base64.b64encode(SEAL.hex().encode()).decode(),
    ],
)  # fmt: skip
def test_every_value_that_the_runner_holds_is_masked(held: HeldSecrets, text: str) -> None:
    assert held.mask(f"[{text}]") == "[***]"


def test_addresses_of_repositories_are_no_secrets(held: HeldSecrets) -> None:
    text = "https://git.example/acme git@git.example: git.example ssh x"

    assert held.mask(text) == text


def write_pem(key: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(key).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@pytest.mark.parametrize(
    "write",
    [
        bytes, lambda key: key.hex().encode(), lambda key: key.hex().upper().encode(),
        base64.b64encode, base64.urlsafe_b64encode, lambda key: key.hex(":").encode(),
        write_pem, lambda key: key.decode("latin-1").encode(),
    ],
)  # fmt: skip
def test_the_identity_key_is_masked_in_every_usual_writing(
    held: HeldSecrets, tmp_path: Path, write: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "job").mkdir()
    log, spool = open_log(tmp_path / "job" / "log", ManualClock(), held=held.find)
    data = write(RAW)

    log.write(Stream.STDOUT, b"[" + data + b"]\n")

    shown = join(close_and_check(log, spool), Stream.STDOUT)
    assert "***" in shown
    # Of a PEM file the lines around stay, and what every key begins with.
    left = shown.replace("***", "").removeprefix("[").removesuffix("]\n")
    assert len(left) < 30 or left.startswith("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEI")
    assert len(left) < 80


def test_a_dump_of_the_key_shows_no_line_of_it(held: HeldSecrets) -> None:
    rows = [RAW[at : at + 16].hex(" ") for at in (0, 16)]

    assert held.mask("\n".join(f"00000{at} {row}" for at, row in enumerate(rows))) == (
        "000000 ***\n000001 ***"
    )


def test_a_secret_that_changes_while_a_job_runs_is_masked_at_once_and_its_old_value_too(
    held: HeldSecrets, settings: RunnerSettings, tmp_path: Path
) -> None:
    (tmp_path / "job").mkdir()
    log, spool = open_log(tmp_path / "job" / "log", ManualClock(), held=held.find)
    log.write(Stream.STDOUT, b"S3CRETVALUE99\n")
    assert settings.secrets_file is not None
    fresh = tmp_path / "fresh"
    fresh.write_text('{"db": "FRESH-VALUE-77"}')
    fresh.replace(settings.secrets_file)

    log.write(Stream.STDOUT, b"FRESH-VALUE-77 S3CRETVALUE99\n")

    assert log.mask("FRESH-VALUE-77") == "***"
    assert join(close_and_check(log, spool), Stream.STDOUT) == "***\n*** ***\n"


def test_access_tokens_are_masked_and_only_the_last_ones_are_kept(held: HeldSecrets) -> None:
    for number in range(100):
        held.note_token(Secret(f"xcr_access-token-{number:03d}"))

    assert held.mask("xcr_access-token-099 xcr_access-token-098") == "*** ***"
    assert held.mask("xcr_access-token-000") == "xcr_access-token-000"


def test_needles_are_the_same_object_until_something_changes(
    held: HeldSecrets, settings: RunnerSettings
) -> None:
    first = held.find()

    assert held.find() is first
    assert settings.secrets_file is not None
    settings.secrets_file.write_text('{"db": "yet-another-value"}')
    os.utime(settings.secrets_file, ns=(1, 1))
    assert held.find() is not first


def test_a_secrets_file_that_is_half_written_is_still_masked(
    held: HeldSecrets, settings: RunnerSettings
) -> None:
    assert settings.secrets_file is not None
    settings.secrets_file.write_text('{"db": "half-written-value", ')

    assert held.mask("half-written-value") == "***"


def test_names_and_numbers_among_outputs_are_masked(
    settings: RunnerSettings, held: HeldSecrets, tmp_path: Path
) -> None:
    assert settings.secrets_file is not None
    settings.secrets_file.write_text('{"pin": "12345678", "db": "S3CRETVALUE99"}')
    (tmp_path / "job").mkdir()
    log, _ = open_log(tmp_path / "job" / "log", ManualClock(), held=held.find)

    told = mask_outputs(log.mask, {"S3CRETVALUE99": [12345678, 7, True, None], "a": {"b": 1.5}})

    assert told == {"***": ["***", 7, True, None], "a": {"b": 1.5}}
