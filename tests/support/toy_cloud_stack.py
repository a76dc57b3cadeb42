"""A Stack of a cloud made from a model: two forms, a guide, a finding on demand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from exclave import __version__
from exclave.appconfig.diagnostics.codes import Code, Severity
from exclave.domain.stacks import Cloud
from exclave.stacks import registry
from exclave.stacks.base import (
    Guide,
    Link,
    Parameter,
    RenderedStack,
    StackAddress,
    StackFile,
    Step,
)
from exclave.stacks.findings import Finding
from exclave.stacks.model import StackModel
from tests.support.toy_stack import ToyFacts

TOO_LARGE = "too-large"
"""A Stack with a role of this name is refused."""


class ToyCloudStack:
    cloud: ClassVar[Cloud] = Cloud.AWS
    forms: ClassVar[tuple[str, ...]] = ("cloudformation", "terraform")

    def check(self, model: StackModel) -> tuple[Finding, ...]:
        if all(role.name != TOO_LARGE for role in model.roles):
            return ()
        return (
            Finding(
                Severity.ERROR, Code.UNKNOWN_TEMPLATE, "it is too large", section="permissions"
            ),
        )

    def render(self, model: StackModel) -> RenderedStack:
        content = {
            "install": model.install_id,
            "roles": [role.name for role in model.roles],
            "secrets": [secret.name for secret in model.secrets],
            "program": model.program.x86_64,
            "keys": [key.kid for key in model.keys],
        }
        text = json.dumps(content, indent=1)
        return RenderedStack(
            (
                StackFile("stack.template.json", "application/json", text, "cloudformation"),
                StackFile("terraform/main.tf.json", "application/json", text, "terraform"),
                StackFile("terraform/notes/README.md", "text/markdown", "# Toy\n", "terraform"),
            )
        )

    def write_guide(
        self, model: StackModel, address: StackAddress | None, before: StackModel | None = None
    ) -> Guide:
        url = "stack.template.json" if address is None else address.build_url("aws.json")
        verb = "create" if before is None else "update"
        published = "" if address is None else address.template_url
        links = (Link("Create it in the console", published),) if published else ()
        return Guide(
            summary=f"Apply it in {model.account.region}.",
            steps=(
                Step("Apply it", "Paste this.", (f"toy {verb} {url}",), links),
                Step("Stop it", links=(Link("Console", "https://toy.test/console"),)),
            ),
        )

    def list_parameters(self, model: StackModel) -> tuple[Parameter, ...]:
        secrets = (
            Parameter(secret.name, required=True, sensitive=True) for secret in model.secrets
        )
        return (*secrets, Parameter("RunnerEnabled", "Turn off to stop.", default="true"))

    def read_facts(self, reported: Mapping[str, str]) -> ToyFacts:
        return ToyFacts.from_report(reported)


def add_toy_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the toy as the Stack of AWS."""
    monkeypatch.setattr(registry, "CLOUD_STACKS", {Cloud.AWS: ToyCloudStack()})


def write_archives(folder: Path) -> Path:
    """Write archives of the runner program that nobody can start; return their folder."""
    for machine in ("x86_64", "aarch64"):
        (folder / f"runner-{__version__}-{machine}.tar.gz").write_bytes(machine.encode())
    return folder
