"""The units of a machine in a cloud: jobs are other users, the guard comes first."""

from pathlib import Path

from exclave.runner.cloud.guard import GUARD_RULES
from exclave.runner.stack.cloud_units import JOB_USERS, UnitPlaces, write_units


def make_places(folder: Path) -> UnitPlaces:
    return UnitPlaces(folder / "opt", folder / "data", folder / "etc", folder / "units")


def test_the_runner_starts_from_the_boot_file_after_the_guard(tmp_path: Path) -> None:
    places = make_places(tmp_path)

    write_units(places, "/usr/bin/python3")

    runner = (places.units / "exclave-runner.service").read_text()
    command = f"/usr/bin/python3 -I {places.root}/start.py runner"
    assert f"ExecStart={command} --boot {places.root}/boot.json" in runner
    compile((places.root / "start.py").read_text(), "start.py", "exec")
    assert "Requires=exclave-guard.service" in runner
    assert f"Environment=EXCLAVE_RUN_AS={JOB_USERS}" in runner
    assert "EXCLAVE_CA_BUNDLE" not in runner
    assert (places.etc / "guard.nft").read_text() == GUARD_RULES
    guard = (places.units / "exclave-guard.service").read_text()
    assert f"ExecStart=/usr/sbin/nft -f {places.etc}/guard.nft" in guard
    assert (places.data / "runner").stat().st_mode & 0o777 == 0o700


def test_certificates_of_the_customer_are_trusted(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    places.etc.mkdir()
    (places.etc / "ca.pem").write_text("PEM")

    write_units(places, "python")

    runner = (places.units / "exclave-runner.service").read_text()
    assert f"Environment=EXCLAVE_CA_BUNDLE={places.etc}/ca.pem\n" in runner
