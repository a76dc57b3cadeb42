"""The runner of a Stack in a cloud under systemd: its unit, and that which guards the metadata."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exclave.runner.cloud import starter
from exclave.runner.cloud.guard import GUARD_RULES

JOB_USERS: Final = "60600-60663"
_RUNNER: Final = """[Unit]
Description=Exclave runner
After=network-online.target exclave-guard.service
Wants=network-online.target
Requires=exclave-guard.service

[Service]
ExecStart={python} -I {root}/start.py runner --boot {root}/boot.json
Environment=EXCLAVE_RUNNER_DATA={data}/runner
Environment=EXCLAVE_JOBS_FOLDER={data}/jobs
Environment=EXCLAVE_RUN_AS={users}
{certificates}Restart=always
RestartSec=5
Delegate=yes
KillMode=mixed
TimeoutStopSec=260
OOMScoreAdjust=-500
ProtectSystem=strict
ReadWritePaths={data} {root}
ProtectKernelModules=yes
ProtectClock=yes
UMask=0077

[Install]
WantedBy=multi-user.target
"""
_GUARD: Final = """[Unit]
Description=Keep jobs of the Exclave runner away from the metadata of this machine
Before=exclave-runner.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f {etc}/guard.nft

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True)
class UnitPlaces:
    """Where the parts of the runner are on its machine."""

    root: Path = Path("/opt/exclave")
    """The program, and the file of the boot script."""
    data: Path = Path("/var/lib/exclave")
    etc: Path = Path("/etc/exclave")
    units: Path = Path("/etc/systemd/system")

    @property
    def names(self) -> tuple[str, str]:
        """The units, in the order in which they start."""
        return "exclave-guard.service", "exclave-runner.service"


def write_units(places: UnitPlaces, python: str) -> None:
    """Write the units and the rules of the guard; nothing is started."""
    for folder in (places.etc, places.units, places.data / "runner", places.data / "jobs"):
        folder.mkdir(parents=True, exist_ok=True)
    (places.data / "runner").chmod(0o700)
    places.root.mkdir(parents=True, exist_ok=True)
    (places.root / "start.py").write_text(Path(starter.__file__).read_text())
    (places.etc / "guard.nft").write_text(GUARD_RULES)
    (places.units / "exclave-guard.service").write_text(_GUARD.format(etc=places.etc))
    bundle = places.etc / "ca.pem"
    certificates = f"Environment=EXCLAVE_CA_BUNDLE={bundle}\n" if bundle.exists() else ""
    (places.units / "exclave-runner.service").write_text(
        _RUNNER.format(
            python=python,
            root=places.root,
            data=places.data,
            users=JOB_USERS,
            certificates=certificates,
        )
    )
