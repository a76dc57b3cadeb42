import pytest

from exclave.runner.kube.api.objects import MAX_OBJECTS, ObjectId, ObjectsRefused, read_objects


def test_lists_are_flattened_and_objects_are_identified() -> None:
    text = """
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}
- {apiVersion: v1, kind: ConfigMapList, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
"""

    objects = read_objects(text)

    assert [one.id for one in objects] == [
        ObjectId("apps", "v1", "Deployment", "shop", "web"),
        ObjectId("", "v1", "ConfigMap", "", "c"),
        ObjectId("", "v1", "Namespace", "", "shop"),
    ]
    assert [one.id.address for one in objects] == [
        "apps/Deployment/shop/web", "ConfigMap/c", "Namespace/shop",
    ]  # fmt: skip
    assert objects[0].id.type == "apps/v1 Deployment"
    assert (objects[2].document, objects[2].line) == (2, 8)


def test_a_kind_whose_name_ends_with_list_is_no_list_without_items() -> None:
    text = "apiVersion: x.dev/v1\nkind: AllowList\nmetadata: {name: a}\nspec: {items: [b]}\n"

    assert [one.id.kind for one in read_objects(text)] == ["AllowList"]


def test_all_flaws_of_a_text_are_described_at_once() -> None:
    text = "a: 1\n---\n[x]\n---\napiVersion: v1\nkind: Pod\nmetadata: {generateName: x-}\n"

    with pytest.raises(ObjectsRefused) as refused:
        read_objects(text)

    assert refused.value.message.splitlines() == [
        "document 1, line 1: `apiVersion` and `kind` and `metadata.name` is missing",
        "document 2, line 3: this is not an object: it needs `apiVersion`, `kind` and `metadata`",
        "document 3, line 5: `generateName` cannot be applied: write `metadata.name`",
    ]


def test_a_text_has_a_largest_number_of_objects() -> None:
    item = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"
    text = "apiVersion: v1\nkind: List\nitems:\n" + f"- {item}\n" * (MAX_OBJECTS + 1)

    with pytest.raises(ObjectsRefused, match="5001 objects"):
        read_objects(text)
