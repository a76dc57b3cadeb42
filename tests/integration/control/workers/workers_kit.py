"""Functions that worker processes run in tests."""

import os
import signal
import time
from pathlib import Path

from exclave.base.errors import NotFound
from exclave.template.problems import TemplateProblem


class UnsendableError(Exception):
    def __init__(self, left: str, right: str) -> None:
        super().__init__(left)
        self.right = right


def add(left: int, right: int) -> int:
    return left + right


def tell_pid() -> int:
    return os.getpid()


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def burn(started: str) -> None:
    Path(started).write_text(str(os.getpid()))
    while True:
        pass


def wait_for(gate: str, name: str, log: str) -> None:
    """Note the name, then wait until the gate is there."""
    with Path(log).open("a") as out:
        out.write(name + "\n")
    while not Path(gate).exists():
        time.sleep(0.01)


def fill_memory() -> int:
    return len(bytearray(4 * 1024**3))


def grow(size: int) -> int:
    return sum(bytearray(b"\x01" * size))


def make_reply(size: int) -> bytes:
    return bytes(size)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def miss() -> None:
    raise NotFound("there is no such thing", hint="look elsewhere", thing="it")


def fail_template() -> None:
    raise TemplateProblem("bad", file="a.toml", line=3, column=4, path="x")


def fail_unsendable() -> None:
    raise UnsendableError("left", "right")


def list_descriptors() -> list[str]:
    found = []
    for each in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(each.readlink()))
        except OSError:
            continue
    return found


def list_environment() -> dict[str, str]:
    return dict(os.environ)
