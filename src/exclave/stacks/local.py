"""The `local` Stack: one script that starts a runner on any machine with Python."""

import pprint
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from importlib import resources
from typing import ClassVar
from urllib.parse import urlsplit

from exclave.base.addresses import is_loopback
from exclave.domain.stacks import Cloud, LocalFacts, StackTerms
from exclave.stacks.base import (
    Instructions,
    Parameter,
    RenderedStack,
    StackAddress,
    StackDocument,
    StackFile,
    list_declared_parameters,
)

SCRIPT = "local.py"
"""The name of the only file."""
_SOURCE = "local_script_template.py"
_STACK = "STACK: dict[str, Any] = "
_PACKAGE = "PACKAGE: dict[str, str] = "
_NOTHING = "{}\n"
_LINT = "  # noqa: "
_WIDTH = 96


class LocalStack:
    """The Stack for any machine with Python: one script without dependencies."""

    cloud: ClassVar[Cloud] = Cloud.LOCAL

    def render(self, document: StackDocument) -> RenderedStack:
        """Return the script; the same document gives the same text."""
        return RenderedStack((StackFile(SCRIPT, "text/x-python", _write_script(document)),))

    def write_instructions(self, address: StackAddress) -> Instructions:
        """Return the command that fetches and runs the script."""
        return Instructions(
            summary="Run the script with Python 3.11 or newer on the machine that is to run the"
            " app, or paste the line there: it fetches the script and runs it.",
            commands=(_write_command(address.build_url(SCRIPT)),),
            warning=_find_warning(address.runner_url),
        )

    def list_parameters(self, terms: StackTerms) -> tuple[Parameter, ...]:
        """Return the customer's inputs and secrets of the app; there are no others."""
        return list_declared_parameters(terms)

    def read_facts(self, reported: Mapping[str, str]) -> LocalFacts:
        """Return the facts about the machine."""
        return LocalFacts.from_report(reported)


def _write_script(document: StackDocument) -> str:
    source = resources.files("exclave.stacks").joinpath(_SOURCE).read_text(encoding="utf-8")
    program = {"file": document.program.file, "sha256": document.program.sha256}
    source = _fill(_drop_lint(source), _STACK, _build_json(document))
    return "#!/usr/bin/env python3\n" + _fill(source, _PACKAGE, program)


def _build_json(document: StackDocument) -> dict[str, object]:
    """Build what the machine keeps as `stack.json`; `StackDocument` of `wire` reads it there."""
    terms = document.terms
    return {
        "terms": {
            "install_id": terms.install_id,
            "install": terms.install,
            "app": terms.app,
            "secrets": [asdict(secret) for secret in terms.secrets],
            "inputs": [asdict(item) for item in terms.inputs],
        },
        "runner_url": document.runner_url,
        "keys": [asdict(key) for key in document.keys],
        "version": document.program.version,
        "enrolment": document.enrolment,
    }


def _write_command(url: str) -> str:
    """Return the command that a customer pastes.

    curl reads the address from a pipe, since other users see the arguments of processes.
    """
    quoted = url.replace("\\", "\\\\").replace('"', '\\"')
    config = shlex.quote(f'url = "{quoted}"')
    return f"printf %s {config} | curl -fsSK - | python3 -"


def _find_warning(runner_url: str) -> str:
    """Return a warning if the script could be replaced on its way, else an empty text."""
    parts = urlsplit(runner_url)
    if parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return ""
    return (
        "the line fetches and runs a script over plain http: anybody on the way can replace it"
        " and take its token. Put TLS before the Runner API and set EXCLAVE_RUNNER_URL to its"
        " https address; until then hand the customer the script itself over a safe channel"
    )


def _fill(source: str, marker: str, value: Mapping[str, object]) -> str:
    head, count, tail = source.partition(f"{marker}{_NOTHING}")
    if not count:
        raise AssertionError(marker)  # the two files belong together
    return f"{head}{marker}{pprint.pformat(value, width=_WIDTH)}\n{tail}"


def _drop_lint(source: str) -> str:
    """Return the source without the comments for our own linter."""
    return "".join(f"{line.partition(_LINT)[0].rstrip()}\n" for line in source.splitlines())
