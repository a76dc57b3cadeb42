"""Every key of the files that a Stack is made from does something, or says that it does nothing."""

from pathlib import Path

import pytest

from tests.unit.stacks.building.every_field_kit import (
    FILES,
    Key,
    change,
    find_outcome,
    list_keys,
    make_files,
    write_app,
)

OF_CLOUDS = {"gcp": "gcp_", "azure": "azure_"}
"""The beginnings of keys that are for one cloud."""
KEYS = list(list_keys())
IN_REFERENCE = {("BreakGlassRole", "type"), ("NamedPolicy", "description")}
"""Keys that people write and nobody needs: the reference says so, and no warning."""


def find_cloud(key: Key) -> str:
    """Return the cloud in which a key does something."""
    if key.field.key == "deployment_scope":
        return "azure"
    found = (of for of, start in OF_CLOUDS.items() if key.field.key.startswith(start))
    return next(found, "aws")


def test_the_walk_finds_the_tables_of_every_file() -> None:
    tables = {key.table.__name__ for key in KEYS}

    assert {key.file for key in KEYS} == set(FILES)
    assert {"NestedStack", "RolePolicy", "NamedPolicy", "SyncTarget", "RoleRule"} <= tables


@pytest.mark.parametrize("cloud", ["aws", *OF_CLOUDS])
def test_every_key_changes_what_is_made_or_is_said_to_change_nothing(
    cloud: str, tmp_path: Path
) -> None:
    files = make_files(cloud)
    before = find_outcome(write_app(tmp_path / "before", files), cloud)
    silent = []
    for number, key in enumerate(KEYS):
        if find_cloud(key) != cloud:
            continue
        if (key.table.__name__, key.field.key) in IN_REFERENCE:
            assert key.field.doc.startswith("Without effect: "), key
            continue
        after = find_outcome(write_app(tmp_path / str(number), change(files, key)), cloud)
        if not after.differs(before) and not after.says_no_effect(before, key):
            silent.append(str(key))

    assert before.told == frozenset(), "the app is right as it is"
    assert silent == [], "these keys do nothing, and nothing says so"
