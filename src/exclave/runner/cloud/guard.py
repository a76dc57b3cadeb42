"""Keeps jobs away from the metadata server of the machine, and proves it when the runner starts."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from exclave.runner.processes.users import JobUser

_REJECT: Final = "counter reject with icmpx admin-prohibited"
GUARD_RULES: Final = f"""\
# Only root may ask the metadata servers of clouds: whoever can ask them can act as the machine.
# Port 53 stays open: in Google Cloud, the resolver has the same address.
table inet exclave
delete table inet exclave
table inet exclave {{
  chain out {{
    type filter hook output priority filter; policy accept;
    meta skuid 0 accept
    ip daddr 169.254.169.254 meta l4proto {{ tcp, udp }} th dport != 53 {_REJECT}
    ip daddr {{ 168.63.129.16, 169.254.170.2 }} {_REJECT}
    ip6 daddr {{ fd00:ec2::254, fd20:ce::254 }} {_REJECT}
  }}
}}
"""
METADATA_ADDRESSES: Final = (
    ("169.254.169.254", 80),
    ("168.63.129.16", 80),
    ("169.254.170.2", 80),
    ("fd00:ec2::254", 80),
    ("fd20:ce::254", 80),
)
_PROBE: Final = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3])).close()
except OSError:
    sys.exit(3)
"""
_CLOSED: Final = 3
_WITHIN_S: Final = 3.0
_LONGEST_S: Final = 30.0
_PYTHON: Final = Path("/usr/bin/python3")
_HINT: Final = "load the rules of exclave-guard.service and start the runner again"


async def find_open_metadata(
    users: Sequence[JobUser], addresses: Sequence[tuple[str, int]] = METADATA_ADDRESSES
) -> str:
    """Return why jobs must not run on this machine; empty if they cannot reach its metadata.

    One of the users of jobs tries: the rules make no difference between them.
    """
    if not users:
        return "jobs run as the runner itself and can act as the machine: set EXCLAVE_RUN_AS"
    tries = (asyncio.to_thread(_try, users[0], *address) for address in addresses)
    codes = await asyncio.gather(*tries)
    for (host, port), code in zip(addresses, codes, strict=True):
        if code == 0:
            return f"jobs can reach the metadata server at {host}:{port}: {_HINT}"
        if code != _CLOSED:
            return f"whether jobs can reach {host}:{port} could not be tried (exit code {code})"
    return ""


def _try(user: JobUser, host: str, port: int) -> int:
    """Return how a child with this user ended that tried to connect."""
    program = str(_PYTHON) if _PYTHON.exists() else sys.executable
    argv = [program, "-I", "-S", "-c", _PROBE, host, str(port), str(_WITHIN_S)]
    try:
        done = subprocess.run(  # noqa: S603 - words, no shell
            argv,
            cwd="/",
            env={},
            user=user.uid,
            group=user.gid,
            extra_groups=[],
            capture_output=True,
            check=False,
            timeout=_LONGEST_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return -1
    return done.returncode
