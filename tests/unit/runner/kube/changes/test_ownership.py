"""Each object says whose it is."""

from exclave.base.json_values import JsonObject
from exclave.runner.kube.changes.ownership import PartOwner

OWNER = PartOwner("ins1", "web")
PLAIN: JsonObject = {"kind": "ConfigMap", "metadata": {"name": "a"}}


def test_a_marked_object_is_known_by_its_part_and_by_no_other() -> None:
    marked = OWNER.mark(PLAIN)

    assert OWNER.owns(marked)
    assert OWNER.find_other(marked) == ""
    assert PartOwner("ins1", "api").find_other(marked) == "the part `ins1/web`"


def test_an_object_without_a_mark_is_nobodys() -> None:
    assert (OWNER.owns(PLAIN), OWNER.find_other(PLAIN)) == (False, "")


def test_a_label_of_the_app_is_kept() -> None:
    own: JsonObject = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "kustomize"}}}

    assert OWNER.mark(own)["metadata"] == {
        "labels": {"app.kubernetes.io/managed-by": "kustomize"},
        "annotations": {"exclave.dev/part": "ins1/web"},
    }
