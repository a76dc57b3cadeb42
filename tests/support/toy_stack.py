"""A Stack for a cloud that has none yet: files in folders, a link, a parameter, a fact, roles."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest

from exclave.domain.stacks import Cloud, StackFacts, StackTerms
from exclave.stacks import registry
from exclave.stacks.base import (
    Instructions,
    Link,
    Parameter,
    RenderedStack,
    StackAddress,
    StackDocument,
    StackFile,
    list_declared_parameters,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyFacts(StackFacts):
    region: str = "toy-1"
    account_id: str | None = None


class ToyStack:
    cloud: ClassVar[Cloud] = Cloud.AWS

    def render(self, document: StackDocument) -> RenderedStack:
        roles = [] if document.account is None else document.account.roles
        template = json.dumps({"app": document.terms.app})
        module = json.dumps({"roles": {role.name: role.kind for role in roles}})
        return RenderedStack(
            (
                StackFile("toy.json", "application/json", template),
                StackFile("terraform/main.tf.json", "application/json", module),
                StackFile("README.md", "text/markdown", "# Toy\n"),
            )
        )

    def write_instructions(self, address: StackAddress) -> Instructions:
        url = address.build_url("toy.json")
        return Instructions(
            summary="Open the link, or run the command.",
            commands=(f"toy apply {url}",),
            links=(Link("Create it in the console", f"https://toy.test/new?template={url}"),),
        )

    def list_parameters(self, terms: StackTerms) -> tuple[Parameter, ...]:
        enabled = Parameter("RunnerEnabled", "Turn off to stop all work.", default="true")
        return (*list_declared_parameters(terms), enabled)

    def read_facts(self, reported: Mapping[str, str]) -> ToyFacts:
        return ToyFacts.from_report(reported)


def add_toy_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the toy beside the Stacks that exist."""
    stacks = {**registry.STACKS, Cloud.AWS: ToyStack()}
    monkeypatch.setattr(registry, "STACKS", stacks)
