"""The `local` Stack: one script that starts a runner on any machine with Python."""

import pprint
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

_SOURCE = "local_stack.py"
_STACK = "STACK: dict[str, Any] = "
_PACKAGE = "PACKAGE: dict[str, str] = "
_NOTHING = "{}\n"
_LINT = "  # noqa: "
_WIDTH = 96


@dataclass(frozen=True, slots=True)
class LocalStack:
    """What differs from one script to another."""

    document: Mapping[str, Any]
    """The Stack as plain JSON: terms, address, keys, version, the one-time token."""
    package_file: str
    package_sha256: str


def make_local_script(params: LocalStack) -> str:
    """Write the script: the same Stack gives the same text."""
    source = resources.files("exclave.stacks").joinpath(_SOURCE).read_text(encoding="utf-8")
    package = {"file": params.package_file, "sha256": params.package_sha256}
    source = _fill(_drop_lint(source), _STACK, dict(params.document))
    return "#!/usr/bin/env python3\n" + _fill(source, _PACKAGE, package)


def make_command(runner_url: str, code: str) -> str:
    """Write the one line that a customer pastes."""
    url = f"{runner_url.rstrip('/')}/v1/stacks/{code}/local.py"
    return f"curl -fsS {shlex.quote(url)} | python3 -"


def _fill(source: str, marker: str, value: Mapping[str, Any]) -> str:
    head, found, tail = source.partition(f"{marker}{_NOTHING}")
    if not found:
        raise AssertionError(marker)  # the two files belong together
    return f"{head}{marker}{pprint.pformat(value, width=_WIDTH)}\n{tail}"


def _drop_lint(source: str) -> str:
    """Leave out what only our own linter reads."""
    return "".join(f"{line.partition(_LINT)[0].rstrip()}\n" for line in source.splitlines())
