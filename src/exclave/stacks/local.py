"""The `local` Stack: one script that starts a runner on any machine with Python."""

import pprint
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from exclave.base.addresses import is_loopback

_SOURCE = "local_script_template.py"
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
    """Return the one line that a customer pastes.

    curl reads the address from a pipe, since other users see the arguments of processes.
    """
    url = f"{runner_url.rstrip('/')}/v1/stacks/{code}/local.py"
    quoted = url.replace("\\", "\\\\").replace('"', '\\"')
    config = shlex.quote(f'url = "{quoted}"')
    return f"printf %s {config} | curl -fsSK - | python3 -"


def make_warning(runner_url: str) -> str:
    """Return what to tell about a line whose script could be replaced on its way; else nothing."""
    parts = urlsplit(runner_url)
    if parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return ""
    return (
        "the line fetches and runs a script over plain http: whoever is on the way can replace it"
        " and take its token. Put TLS before the Runner API and set EXCLAVE_RUNNER_URL to its"
        " https address; until then hand the customer the script itself over a safe channel"
    )


def _fill(source: str, marker: str, value: Mapping[str, Any]) -> str:
    head, found, tail = source.partition(f"{marker}{_NOTHING}")
    if not found:
        raise AssertionError(marker)  # the two files belong together
    return f"{head}{marker}{pprint.pformat(value, width=_WIDTH)}\n{tail}"


def _drop_lint(source: str) -> str:
    """Leave out what only our own linter reads."""
    return "".join(f"{line.partition(_LINT)[0].rstrip()}\n" for line in source.splitlines())
