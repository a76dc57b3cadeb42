"""Nothing that a page points at is missing: files, anchors, paths in the repository."""

import re

import pytest

from tests.unit.docs.pages import ROOT, Page, list_pages

PAGES = list_pages()
_PATH = re.compile(r"(?:src|tests|docs|openapi|requirements|\.ci)/[\w./*<>-]*")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page: Page) -> None:
    dead = []
    for link in page.links():
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.file.parent / target).resolve() if target else page.file
        if not file.exists() or (anchor and anchor not in Page(file).anchors()):
            dead.append(link)

    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page: Page) -> None:
    named = {code for code in page.codes() if _PATH.fullmatch(code)}

    missing = [path for path in sorted(named) if not _is_there(path)]

    assert missing == []


def test_every_page_is_reached_from_the_index() -> None:
    indexes = [Page(file) for file in sorted((ROOT / "docs").rglob("index.md"))]
    listed = {
        (index.file.parent / link.partition("#")[0]).resolve()
        for index in indexes
        for link in index.links()
    }

    hidden = [
        page.name for page in PAGES if page.name.startswith("docs/") and page.file not in listed
    ]

    assert hidden == ["docs/index.md"]


def test_decisions_are_numbered_without_gaps_and_have_all_parts() -> None:
    decisions = [page for page in PAGES if "/adr/" in page.name]

    assert [int(page.file.name[:4]) for page in decisions] == list(range(1, len(decisions) + 1))
    for page in decisions:
        assert {"context", "decision", "consequences", "alternatives"} <= page.anchors(), page.name


def _is_there(path: str) -> bool:
    if "<" in path:  # a placeholder: its folder has to exist
        return (ROOT / path.partition("<")[0]).parent.is_dir()
    return any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists()
