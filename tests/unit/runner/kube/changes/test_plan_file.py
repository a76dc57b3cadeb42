"""The same plan gives the same bytes, and is read as it was written."""

import pytest

from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.changes.plan_file import (
    PlanFile,
    PlannedChange,
    pack_files,
    read_plan_file,
    write_plan,
)

ID = ObjectId("", "v1", "ConfigMap", "ns", "a")
PLAN = PlanFile(
    operation="apply",
    namespace="ns",
    cluster="uid",
    serial=3,
    lineage="line",
    source="sha256:1",
    changes=(PlannedChange(ID, "update", "f" * 64, "uid-a", force=True),),
    objects=(
        WantedObject(
            ID,
            {
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {"name": "a", "namespace": "ns"},
                "data": {"ä": "ö"},
            },
        ),
    ),
    namespaces=("ns",),
    extra={"chart.tgz": b"\x00\x01"},
)


def test_a_plan_is_read_as_it_was_written() -> None:
    assert read_plan_file(write_plan(PLAN)) == PLAN


def test_the_order_in_which_a_plan_was_made_does_not_change_its_bytes() -> None:
    assert pack_files({"b": b"2", "a": b"1"}) == pack_files({"a": b"1", "b": b"2"})


@pytest.mark.parametrize(
    "data", [b"", b"no tar", pack_files({"x": b"1"}), pack_files({"meta.json": b'{"format": 9}'})]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="plan"):
        read_plan_file(data)
