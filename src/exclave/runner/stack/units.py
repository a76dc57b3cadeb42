"""A Stack under systemd: the text of a unit file."""

import shlex
from collections.abc import Sequence

from exclave.runner.stack.folder import StackFolder

_UNIT = """[Unit]
Description=Exclave Stack of {install}
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=5
KillMode=mixed
Delegate=yes
TimeoutStopSec=260
UMask=0077

[Install]
WantedBy=default.target
"""


def write_unit(folder: StackFolder, command: Sequence[str]) -> str:
    """Write a unit that keeps this Stack running; systemd expands `%` and `$`."""
    line = shlex.join(command).replace("%", "%%").replace("$", "$$")
    return _UNIT.format(install=folder.read_document().terms.install, command=line)
