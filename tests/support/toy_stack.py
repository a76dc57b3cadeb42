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
        template = json.dumps({"app": document.terms.app})
        module = json.dumps({"install": document.terms.install})
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
    """Register the toy beside the Stacks that exist, in the place of the real one of its cloud."""
    stacks = {**registry.STACKS, Cloud.AWS: ToyStack()}
    monkeypatch.setattr(registry, "STACKS", stacks)
    clouds = {c: stack for c, stack in registry.CLOUD_STACKS.items() if c is not Cloud.AWS}
    monkeypatch.setattr(registry, "CLOUD_STACKS", clouds)
