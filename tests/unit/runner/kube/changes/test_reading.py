"""Objects get their namespaces, and everything that is wrong with a text is said at once."""

import pytest

from exclave.runner.kube.api.discovery import Resource, collect
from exclave.runner.kube.api.objects import ObjectsRefused, read_objects
from exclave.runner.kube.changes.reading import list_namespaces, place_objects

DISCOVERY = collect(
    [
        Resource("", "v1", "ConfigMap", "configmaps", namespaced=True),
        Resource("", "v1", "Namespace", "namespaces", namespaced=False),
        Resource("apps", "v1", "Deployment", "deployments", namespaced=True),
        Resource("apps", "v1beta1", "Deployment", "deployments", namespaced=True),
        Resource(
            "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "crds", namespaced=False
        ),
    ]
)
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Database, plural: databases}
  versions: [{name: v1, served: true}]
"""


def document(api_version: str, kind: str, name: str, namespace: str = "") -> str:
    where = f", namespace: {namespace}" if namespace else ""
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}{where}}}\n"


def place(*documents: str) -> list[str]:
    text = "---\n".join(documents)
    return [one.id.address for one in place_objects(read_objects(text), DISCOVERY, "shop")]


def test_namespaced_objects_get_the_namespace_of_the_component() -> None:
    assert place(
        document("v1", "ConfigMap", "a"),
        document("v1", "ConfigMap", "a", "other"),
        document("v1", "Namespace", "other", "ignored"),
    ) == ["ConfigMap/shop/a", "ConfigMap/other/a", "Namespace/other"]


def test_a_kind_may_be_made_by_a_definition_in_the_same_text() -> None:
    assert place(document("example.com/v1", "Database", "db"), DEFINITION) == [
        "example.com/Database/db",
        "apiextensions.k8s.io/CustomResourceDefinition/databases.example.com",
    ]


def test_duplicates_and_unknown_kinds_are_told_with_their_lines_all_at_once() -> None:
    with pytest.raises(ObjectsRefused) as refused:
        place(
            document("apps/v1", "Deployment", "web"),
            document("example.com/v1", "Database", "db"),
            document("apps/v1beta1", "Deployment", "web", "shop"),
        )

    lines = refused.value.message.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("document 2, line 5: the cluster has no kind `Database`")
    assert lines[1].startswith("document 3, line 9: `apps/Deployment/shop/web` is also document 1")


def test_namespaces_among_the_objects_are_found() -> None:
    text = document("v1", "Namespace", "made")

    assert list_namespaces(place_objects(read_objects(text), DISCOVERY, "shop")) == {"made"}
