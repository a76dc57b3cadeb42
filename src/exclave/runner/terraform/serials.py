"""The serial of a state: checked against the header, and raised after a restore."""

import json
import re

from exclave.runner.secrets.sealing import SealBroken
from exclave.wire.terraform import StateHeader

_SERIAL = re.compile(rb'("serial"\s*:\s*)\d+')


def align_serial(data: bytes, header: StateHeader) -> bytes:
    """Return the state with the serial of its header; raise if they do not fit.

    Only the digits are replaced: serialising the document again would round its numbers.
    """
    document = json.loads(data)
    inside = header.serial if header.sealed_serial is None else header.sealed_serial
    if (document.get("serial"), document.get("lineage")) != (inside, header.lineage):
        raise _refuse(f"the sealed state is at serial {document.get('serial')}, not {inside}")
    if inside == header.serial:
        return data
    wanted = {**document, "serial": header.serial}
    for match in _SERIAL.finditer(data):
        raised = b"%s%s%d%s" % (data[: match.start()], match[1], header.serial, data[match.end() :])
        if json.loads(raised) == wanted:
            return raised
    raise _refuse("the serial of the sealed state cannot be found")


def _refuse(message: str) -> SealBroken:
    return SealBroken(message, hint="See what is stored: `exclave installs tf-state versions`.")
