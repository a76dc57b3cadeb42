"""Differences are found field by field, and entries of lists by what names them."""

import pytest

from exclave.base.json_values import Json, JsonObject
from exclave.runner.kube.changes.cleaning import clean, make_fingerprint
from exclave.runner.kube.changes.fields import (
    describe_new,
    list_changes,
    list_wanted_changes,
    write_field_path,
)


def shown(before: Json, after: Json) -> list[tuple[str, Json, Json]]:
    return [(write_field_path(path), old, new) for path, old, new in list_changes(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("a", 1, 2)]),
        ({"a": {"b": 1}}, {}, [("a", {"b": 1}, None)]),
        ({}, {"a": {"b": 1, "c": {}}}, [("a.b", None, 1), ("a.c", None, {})]),
        ({"x.y/z": 1}, {"x.y/z": 2}, [('["x.y/z"]', 1, 2)]),
    ],
)
def test_a_field_that_differs_is_named(before: Json, after: Json, changes: list[object]) -> None:
    assert shown(before, after) == changes


def test_entries_of_a_list_are_matched_by_their_name_whatever_their_order() -> None:
    before = [{"name": "web", "image": "a"}, {"name": "log", "image": "b"}]
    after = [{"name": "log", "image": "b"}, {"name": "new", "image": "c"}, {"name": "web"}]

    changes = shown({"containers": before}, {"containers": after})

    assert changes == [
        ('containers["web"].image', "a", None),
        ('containers["new"].image', None, "c"),
        ('containers["new"].name', None, "new"),
    ]


def test_ports_that_share_a_number_are_matched_by_their_place() -> None:
    both: list[Json] = [
        {"containerPort": 53, "protocol": "TCP"},
        {"containerPort": 53, "protocol": "UDP"},
    ]
    one: list[Json] = [{"containerPort": 53, "protocol": "TCP"}]

    assert shown(both, one) == [("[1]", {"containerPort": 53, "protocol": "UDP"}, None)]


def test_what_the_wanted_object_does_not_name_is_no_change() -> None:
    live: JsonObject = {
        "spec": {"replicas": 3, "paused": False, "list": [{"name": "a", "x": 1, "y": 2}]}
    }
    wanted: JsonObject = {"spec": {"replicas": 2, "list": [{"name": "a", "x": 5}]}}

    changes = [
        (write_field_path(path), old, new) for path, old, new in list_wanted_changes(live, wanted)
    ]

    assert changes == [('spec.list["a"].x', 1, 5), ("spec.replicas", 3, 2)]


def test_a_new_object_is_described_without_what_identifies_it() -> None:
    value: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"k": "v"},
    }

    assert [write_field_path(change.path) for change in describe_new(value)] == ["data.k"]


def live(**metadata: Json) -> dict[str, Json]:
    own: JsonObject = {"uid": "1", "resourceVersion": "7", "generation": 2, "managedFields": [{}]}
    return {"kind": "X", "metadata": {"name": "a", **own, **metadata}, "status": {"ready": 1}}


def test_what_the_server_writes_makes_no_difference() -> None:
    revision = {"deployment.kubernetes.io/revision": "4"}

    assert clean(live(annotations=revision)) == {"kind": "X", "metadata": {"name": "a"}}
    assert make_fingerprint(live(annotations=revision)) == make_fingerprint(live())
    assert make_fingerprint(live(labels={"a": "b"})) != make_fingerprint(live())
    assert make_fingerprint(None) == ""
