"""The state never has less than the cluster, and what is no longer wanted is removed with care."""

import pytest

from exclave.base.json_values import Json
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.ownership import PartOwner
from exclave.runner.kube.changes.prune import decide_prune
from exclave.runner.kube.changes.state import (
    KubeState,
    PlanMark,
    StateObject,
    begin_removal,
    describe_state,
    finish,
    read_kube_state,
    unite,
    write_state,
)

OWNER = PartOwner("ins1", "web")
OLD = StateObject("", "ConfigMap", "ns", "old", "uid-old")
SAME = StateObject("apps", "Deployment", "ns", "web", "uid-web")
STATE = KubeState(
    serial=4, lineage="line", kind="manifest", cluster="c", namespace="ns", objects=(OLD, SAME)
)
MARK = PlanMark("exe1", "sha256:1")
PLANNED = [
    ObjectId("apps", "v1", "Deployment", "ns", "web"),
    ObjectId("", "v1", "Secret", "ns", "new"),
]


def test_before_the_first_change_the_state_has_old_and_planned_objects() -> None:
    united = unite(STATE, PLANNED, MARK)

    assert united.serial == 5
    assert [one.address for one in united.objects] == [
        "ConfigMap/ns/old",
        "apps/Deployment/ns/web",
        "Secret/ns/new",
    ]
    assert (united.plan, united.healthy) == (MARK, None)


def test_after_success_it_has_exactly_what_was_made_and_the_plan_is_healthy() -> None:
    finished = finish(unite(STATE, PLANNED, MARK), [SAME], healthy=True)

    assert (finished.serial, finished.objects, finished.healthy) == (6, (SAME,), MARK)


def test_a_state_is_read_as_it_was_written() -> None:
    state = finish(unite(STATE, PLANNED, MARK), [SAME, OLD], healthy=True)

    assert read_kube_state(write_state(state)) == state


def test_a_teardown_leaves_a_mark_until_it_or_the_next_deploy_has_ended() -> None:
    removing = begin_removal(STATE, PlanMark("exe9", "sha256:9", 3))
    deploying = unite(removing, PLANNED, MARK)

    assert removing.serial == 5
    assert read_kube_state(write_state(deploying)).removing == PlanMark("exe9", "sha256:9", 3)
    assert finish(deploying, [SAME], healthy=False).removing is None


@pytest.mark.parametrize(
    "data", [b"{}", b"[]", b'{"version": 4}', b'{"format": "exclave-kube/1", "kind": "manifest"}']
)
def test_the_state_of_another_tool_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="state"):
        read_kube_state(data)


def test_a_header_has_addresses_kinds_and_uids() -> None:
    header = describe_state(STATE, write_state(STATE), {"apps/Deployment": "apps/v1 Deployment"})

    assert [(one.address, one.type, one.id) for one in header.resources] == [
        ("ConfigMap/ns/old", "ConfigMap", "uid-old"),
        ("apps/Deployment/ns/web", "apps/v1 Deployment", "uid-web"),
    ]


def live(uid: str = "uid-old", part: str = "ins1/web", **annotations: str) -> dict[str, Json]:
    own = {
        "exclave.dev/part": part,
        **{key.replace("__", "/"): v for key, v in annotations.items()},
    }
    return {"metadata": {"name": "old", "uid": uid, "annotations": own}}


@pytest.mark.parametrize(
    ("value", "action"),
    [
        (None, "forget"),
        (live(), "delete"),
        (live(uid="another"), "forget"),
        (live(part="ins1/other"), "forget"),
        (live(part=""), "forget"),
        (live(**{"exclave.dev/prune": "false"}), "keep"),
        (live(**{"helm.sh/resource-policy": "keep"}), "keep"),
    ],
)
def test_only_what_is_surely_ours_is_removed(value: dict[str, Json] | None, action: str) -> None:
    assert decide_prune(OLD, value, OWNER).action == action


def test_an_object_that_a_crash_left_without_its_uid_is_known_by_its_mark() -> None:
    made = OLD._replace(uid="")

    assert decide_prune(made, live(uid="any"), OWNER).action == "delete"


def test_finalizers_are_told_with_the_removal() -> None:
    value = live()
    value["metadata"] = {**dict(value["metadata"]), "finalizers": ["example.com/hold"]}  # type: ignore[arg-type]

    assert "`example.com/hold` releases it" in decide_prune(OLD, value, OWNER).note
