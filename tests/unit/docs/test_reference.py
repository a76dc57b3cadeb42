"""The reference pages are what the code says, and leave nothing out."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields

import click
import pytest

from docs.generate import PAGES, REFERENCE, TEXTS, list_problems
from exclave.cli.root import build_root
from exclave.domain.jobs import Reason
from exclave.domain.quotas import Quotas
from exclave.domain.timings import Timings
from exclave.main.entry import PROCESSES
from exclave.main.environment import COMMAND_LINE, QUOTA, find_unknown
from exclave.main.settings import RunnerSettings, ServerSettings
from tests.unit.docs.pages import ROOT, Page, list_pages

JOB_VARIABLES = {
    "EXCLAVE_OUTPUTS",
    "EXCLAVE_INPUTS",
    "EXCLAVE_JOB",
    "EXCLAVE_APPROVED_DIGEST",
    "EXCLAVE_",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert _read(name) == PAGES[name](), "run `python docs/generate.py`"


def test_every_setting_is_in_the_reference() -> None:
    page = _read("settings.md")
    names = {*ServerSettings.model_fields, *RunnerSettings.model_fields}
    names -= {"timings", "quotas"}
    names |= {f"{QUOTA}{field.name}".lower() for field in fields(Quotas)}
    names |= {field.name for field in fields(Timings)} | {name.lower() for name in COMMAND_LINE}

    assert [name for name in names if f"`EXCLAVE_{name.upper()}`" not in page] == []


def test_every_reason_and_problem_is_in_the_reference() -> None:
    reasons, problems = _read("exit-reasons.md"), _read("problem-codes.md")

    assert [reason for reason in Reason if f"`{reason}`" not in reasons] == []
    assert [kind.code for kind in list_problems() if f"`{kind.code}`" not in problems] == []


def test_no_text_is_left_of_something_that_is_gone() -> None:
    assert set(TEXTS["reasons"]) == set(Reason)
    assert set(TEXTS["command_line"]) == COMMAND_LINE


def test_every_command_is_in_the_reference() -> None:
    page = _read("cli.md")
    root = build_root(PROCESSES)

    missing = [path for path, _ in _list_commands(root, "exclave") if f"# {path}\n" not in page]

    assert missing == []


def test_every_option_has_a_help_text() -> None:
    silent = [
        f"{path} {option.opts[0]}"
        for path, command in _list_commands(build_root(PROCESSES), "exclave")
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]

    assert silent == []


@pytest.mark.parametrize("name", ["control", "runner"])
def test_every_path_of_the_apis_is_in_the_reference(name: str) -> None:
    page = _read("http-api.md")
    paths = json.loads((ROOT / "openapi" / f"{name}.json").read_text())["paths"]

    assert [path for path in paths if f"{path}`" not in page] == []


@pytest.mark.parametrize("page", list_pages(), ids=lambda page: page.name)
def test_every_variable_that_a_page_names_is_one(page: Page) -> None:
    named = set(re.findall(r"EXCLAVE_[A-Z0-9_]*", page.text)) - JOB_VARIABLES

    assert find_unknown(dict.fromkeys(named, "x")) == []


def _list_commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from _list_commands(command, f"{path} {name}")


def _read(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")
