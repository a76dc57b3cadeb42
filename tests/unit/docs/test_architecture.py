"""The page on architecture lists what the code has: rooms, folders, tables."""

import re

import pytest

from exclave.storage.tables import INSTANCE_TABLES, metadata
from tests.unit.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs/architecture.md")
SOURCE = ROOT / "src" / "exclave"
_RELATION = re.compile(r"^ {4}(\w+) \|\|--o\{ (\w+) : has$", re.MULTILINE)
_LONE = re.compile(r"^ {4}(\w+)$", re.MULTILINE)


def test_the_table_of_rooms_has_every_room() -> None:
    rooms = {room.name for room in SOURCE.iterdir() if (room / "__init__.py").exists()}

    assert set(PAGE.first_column("Rooms")) == rooms


def test_the_table_of_folders_has_every_folder_of_a_room() -> None:
    folders = {
        f"src/exclave/{folder.relative_to(SOURCE)}"
        for folder in SOURCE.glob("*/**/")
        if folder.parent != SOURCE and (folder / "__init__.py").exists()
    }

    assert set(PAGE.first_column("Folders")) == folders


def test_the_table_of_tables_has_every_table_once() -> None:
    assert sorted(PAGE.first_column("Tables")) == sorted(metadata.tables)


def test_the_page_names_the_tables_without_a_tenant() -> None:
    sentence = re.search(r"Every table but (.*?) has `org_id`", PAGE.text, re.DOTALL)

    assert sentence is not None
    assert set(re.findall(r"`(\w+)`", sentence[1])) == INSTANCE_TABLES


def test_the_diagrams_show_every_table_and_every_foreign_key() -> None:
    diagrams = [fence for fence in PAGE.fences("mermaid") if fence.startswith("erDiagram")]
    drawn = {pair for fence in diagrams for pair in _RELATION.findall(fence)}
    lone = {name for fence in diagrams for name in _LONE.findall(fence)}

    stored = {
        (key.column.table.name, table.name)
        for table in metadata.tables.values()
        for key in table.foreign_keys
    }
    assert drawn == stored
    assert lone | {name for pair in drawn for name in pair} == set(metadata.tables)


@pytest.mark.parametrize("kind", ["sequenceDiagram", "stateDiagram-v2", "erDiagram"])
def test_the_page_draws_what_is_hard_to_tell(kind: str) -> None:
    assert [fence for fence in PAGE.fences("mermaid") if fence.startswith(kind)] != []
