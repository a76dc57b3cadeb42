"""What the pages tell people to type can be typed, and what they tell them to write is accepted."""

import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from exclave.cli.root import build_root
from exclave.main.entry import PROCESSES
from exclave.wire.workflows import NewWorkflow
from tests.unit.docs.pages import ROOT, Page, list_pages

PAGES = list_pages()
QUEUE = "ins_" + "0" * 26
EXAMPLES = 3
"""Whole workflows on the page that teaches to write them."""
README = Page(ROOT / "README.md")


def test_the_readme_names_what_a_new_user_types_first() -> None:
    makefile = (ROOT / "Makefile").read_text()

    for target in ("run", "demo", "test", "check", "docs", "bench", "faults"):
        assert f"make {target}" in README.text
        assert f"\n{target}:" in makefile
    assert len(list(README.commands())) >= 6


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_parses(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Path, "convert", lambda _self, value, _param, _ctx: Path(value))

    for words in page.commands():
        try:
            _parse(build_root(PROCESSES), words)
        except click.exceptions.Exit:
            pass
        except click.ClickException as error:
            pytest.fail(f"exclave {' '.join(words)}: {error.format_message()}")


def list_workflows(page: Page) -> list[dict[str, Any]]:
    """List the workflows that a page writes down, without the actions and runbooks of apps."""
    examples = [tomllib.loads(fence) for fence in page.fences("toml")]
    return [
        data
        for data in examples
        # Actions have triggers, and steps of runbooks have types.
        if "steps" in data
        and "triggers" not in data
        and not any("type" in step for step in data["steps"])
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_workflow_of_a_page_is_valid(page: Page) -> None:
    for data in list_workflows(page):
        NewWorkflow.model_validate({**data, "queue_id": QUEUE})


def test_the_page_on_writing_workflows_has_examples() -> None:
    page = Page(ROOT / "docs/how-to/write-a-workflow.md")

    assert len(list_workflows(page)) >= EXAMPLES


def _parse(root: click.Command, words: list[str]) -> None:
    """Walk down to the command and let click read its arguments, without running anything."""
    command, name, parent = root, "exclave", None
    while True:
        context = command.make_context(name, list(words), parent=parent, obj={})
        if not isinstance(command, click.Group):
            return
        words = [*context._protected_args, *context.args]
        if not words:
            return
        found, below, words = command.resolve_command(context, words)
        assert found is not None
        assert below is not None
        command, name, parent = below, found, context
