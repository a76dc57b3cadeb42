from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from exclave.control.apps.config_diff import FILES, Change, diff_lines, diff_parts, find_changed


@dataclass(frozen=True)
class P:
    section: str
    name: str
    value: Mapping[str, Any] = field(default_factory=dict)
    hash: str = ""


def part(name: str, content: str = "", section: str = "component", **value: Any) -> P:
    return P(section, name, value, content or repr(value))


def test_the_same_parts_differ_in_nothing() -> None:
    parts = [part("a", size="1"), part("", section="sandbox")]

    assert diff_parts(parts, parts).parts == ()


def test_parts_are_added_changed_and_removed() -> None:
    before = [part("gone"), part("kept"), part("other", size="1")]
    after = [part("new"), part("kept"), part("other", size="2")]

    diff = diff_parts(before, after)

    assert [(each.key, each.change) for each in diff.parts] == [
        ("component:new", Change.ADDED),
        ("component:other", Change.CHANGED),
        ("component:gone", Change.REMOVED),
    ]


def test_a_part_of_another_section_is_another_part() -> None:
    diff = diff_parts([part("a", section="action")], [part("a", section="runbook")])

    assert diff.keys == ("runbook:a", "action:a")


def test_fields_are_named_by_their_path() -> None:
    before = part("a", vars={"size": "1", "old": "x"}, on=True, needs=["b"], steps=[{"name": "s"}])
    after = part("a", vars={"size": "2"}, needs=["b", "c"], steps=[{"name": "s", "run": "x"}])

    (change,) = diff_parts([before], [after]).parts

    assert [(each.path, each.before, each.after) for each in change.fields] == [
        ("vars.size", "1", "2"),
        ("vars.old", "x", None),
        ("on", "true", None),
        ("needs", '["b"]', '["b", "c"]'),
        ("steps[s].run", None, "x"),
    ]


def test_a_new_item_of_a_list_moves_no_other() -> None:
    one, two = {"name": "one", "run": "1"}, {"name": "two", "run": "2"}

    (change,) = diff_parts([part("a", steps=[two])], [part("a", steps=[one, two])]).parts

    assert {each.path for each in change.fields} == {"steps[one].name", "steps[one].run"}


def test_items_without_a_name_are_counted() -> None:
    before, after = {"type": "manual"}, {"type": "cron"}

    (change,) = diff_parts([part("a", triggers=[before])], [part("a", triggers=[after])]).parts

    assert [each.path for each in change.fields] == ["triggers[0].type"]


def test_texts_are_compared_line_by_line() -> None:
    assert diff_lines([("# A\nsame\n", "# B\nsame\n"), ("", "new\n")]) == [
        "@@ -1,2 +1,2 @@\n-# A\n+# B\n same",
        "@@ -0,0 +1 @@\n+new",
    ]


def test_hashes_alone_tell_which_parts_differ() -> None:
    before = [part("a", "h1"), part("b", "h1"), part("", "h1", section="sandbox")]
    after = [part("a", "h2"), part("", "h1", section="sandbox"), part("c", "h1")]

    assert find_changed(before, after) == list(diff_parts(before, after).keys)
    assert find_changed(before, after) == ["component:a", "component:c", "component:b"]


def test_another_hash_with_the_same_fields_means_other_files() -> None:
    (change,) = diff_parts([part("a", "h1")], [part("a", "h2")]).parts

    assert [(each.path, each.before, each.after) for each in change.fields] == [(FILES, "h1", "h2")]


def test_a_field_that_becomes_empty_is_told() -> None:
    (change,) = diff_parts([part("a", labels={"x": "1"})], [part("a", labels={})]).parts

    assert [(each.path, each.after) for each in change.fields] == [
        ("labels.x", None),
        ("labels", "{}"),
    ]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
_VALUES = st.dictionaries(st.text(max_size=2), _JSON, max_size=3)


@given(_VALUES, _VALUES)
def test_any_two_values_can_be_compared(before: dict[str, Any], after: dict[str, Any]) -> None:
    old, new = P("x", "a", before, "1"), P("x", "a", after, "2")

    (change,) = diff_parts([old], [new]).parts

    assert change.fields
    assert all(each.before != each.after for each in change.fields)
    assert len(diff_lines([(each.before or "", each.after or "") for each in change.fields])) > 0


def test_files_that_changed_with_the_definition_are_told_as_well() -> None:
    repo = {"repo": ".", "directory": "./web/"}
    before = [part("a", size="1", public_repo=repo), part("b", size="1", public_repo=repo)]
    after = [part("a", size="2", public_repo=repo), part("b", size="1", public_repo=repo)]

    changed = diff_parts(before, after, {"web": "old"}, {"web": "new"}).parts
    kept = diff_parts(before, after, {"web": "old"}, {"web": "old"}).parts

    assert [[field.path for field in each.fields] for each in changed] == [["size", FILES]]
    assert [[field.path for field in each.fields] for each in kept] == [["size"]]
