"""Pinned content of the registry: what config versions use, and everything connected to it."""

from collections.abc import Iterable, Sequence

from exclave.domain.manifests import ManifestNode
from exclave.domain.registry import Denied, Place
from exclave.storage import registry_gc
from exclave.storage.engine.database import Tx


def check_unpinned(tx: Tx, place: Place, digest: str) -> None:
    """Raise if a config version pins the manifest."""
    pins = registry_gc.list_pins(tx, place.org, place.repository)
    graph = registry_gc.list_graph(tx, place.org, place.repository)
    if digest in find_reachable(graph, pins):
        raise Denied(
            "a config version of the app pins this content",
            hint="It goes when nothing pins it any more; remove the app's old versions first.",
        )


def find_reachable(graph: Sequence[ManifestNode], roots: Iterable[str]) -> set[str]:
    """Return everything that is connected with the roots.

    A manifest keeps what it names, what it refers to as its subject, and what refers to it.
    """
    edges: dict[str, set[str]] = {}
    for node in graph:
        edges.setdefault(node.digest, set()).update(node.refers)
        if node.subject is not None:
            edges[node.digest].add(node.subject)
            edges.setdefault(node.subject, set()).add(node.digest)
    digests: set[str] = set()
    todo = list(roots)
    while todo:
        digest = todo.pop()
        if digest not in digests:
            digests.add(digest)
            todo.extend(edges.get(digest, ()))
    return digests
