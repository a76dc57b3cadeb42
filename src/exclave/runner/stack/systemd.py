"""A Stack under systemd: the text of a unit file."""

import re
from collections.abc import Sequence

from exclave.base.printable import escape_line
from exclave.runner.stack.folder import StackFolder

_PLAIN = re.compile(r"[A-Za-z0-9_./:=@%$+-]+")
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
    """Return a unit file that keeps this Stack running."""
    install = escape_line(folder.read_document().terms.install).replace("%", "%%")
    return _UNIT.format(install=install, command=" ".join(map(_quote, command)))


def _quote(word: str) -> str:
    """Return a word quoted for systemd, which expands `%` and `$` and knows C's escapes."""
    text = escape_line(word.replace("\\", "\\\\").replace('"', '\\"'))
    text = text.replace("%", "%%").replace("$", "$$")
    return text if _PLAIN.fullmatch(text) else f'"{text}"'
