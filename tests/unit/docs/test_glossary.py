"""The glossary has each noun once, in order, with a module that exists."""

import re

from tests.unit.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs/glossary.md")
SOURCE = ROOT / "src" / "exclave"
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| `([^`]+)` \|$", re.MULTILINE)
ROWS: list[tuple[str, str, str]] = _ROW.findall(PAGE.text)

CORE = frozenset(
    [
        "account",
        "action",
        "app",
        "artifact",
        "build",
        "component",
        "config",
        "envelope",
        "epoch",
        "execution",
        "executor",
        "gate",
        "input",
        "install",
        "intent",
        "job",
        "lane",
        "lease",
        "offer",
        "org",
        "part",
        "plan",
        "policy",
        "poll",
        "queue",
        "quota",
        "runbook",
        "runner",
        "sandbox",
        "schedule",
        "secret",
        "Stack",
        "state",
        "step",
        "sync",
        "workflow",
    ]
)


def test_every_noun_stands_once_and_in_alphabetical_order() -> None:
    nouns = [noun for noun, _, _ in ROWS]

    assert len({noun.lower() for noun in nouns}) == len(nouns)
    assert nouns == sorted(nouns, key=str.lower)
    assert set(nouns) >= CORE


def test_every_noun_is_explained_in_one_sentence() -> None:
    rows = [line for line in PAGE.text.splitlines() if line.startswith("| ")]

    assert len(rows) == len(ROWS) + 1  # the head of the table
    assert [noun for noun, text, _ in ROWS if not re.fullmatch(r"[^.]+(\.|…)", text)] == []


def test_every_module_that_the_glossary_names_exists() -> None:
    below = "|".join(sorted(room.name for room in SOURCE.iterdir() if room.is_dir()))
    named = {code for code in PAGE.codes() if re.fullmatch(rf"(?:{below})(?:\.\w+)+", code)}
    named |= {module for _, _, module in ROWS if module != "exclave"}

    assert [module for module in sorted(named) if not is_module(module)] == []


def test_the_glossary_is_linked_where_newcomers_begin() -> None:
    assert "glossary.md" in Page(ROOT / "docs/index.md").links()
    assert "glossary.md" in Page(ROOT / "docs/architecture.md").links()


def is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()
