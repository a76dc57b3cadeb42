"""Records of releases: decoded and encoded as both of Helm's drivers keep them."""

import base64
import gzip
import json

import pytest

from exclave.base.json_values import JsonObject
from exclave.runner.helm.records import (
    Driver,
    decode_release,
    encode_release,
    list_since_deployed,
    mark_failed,
    read_record,
)
from exclave.runner.outcomes import WorkFailed

RELEASE: JsonObject = {"name": "web", "info": {"status": "pending-upgrade"}, "manifest": "ü"}


def make_holder(driver: Driver, revision: int, status: str) -> JsonObject:
    return {
        "metadata": {
            "name": f"sh.helm.release.v1.web.v{revision}",
            "resourceVersion": "7",
            "managedFields": [{"manager": "helm"}],
            "labels": {"owner": "helm", "version": str(revision), "status": status},
        },
        "data": {"release": encode_release(driver, RELEASE)},
    }


@pytest.mark.parametrize("driver", ["secret", "configmap"])
def test_a_record_survives_encoding(driver: Driver) -> None:
    assert decode_release(driver, encode_release(driver, RELEASE)) == RELEASE


def test_a_secret_is_encoded_once_more_than_a_configmap() -> None:
    packed = base64.b64encode(gzip.compress(json.dumps(RELEASE).encode()))

    assert decode_release("configmap", packed.decode()) == RELEASE
    assert decode_release("secret", base64.b64encode(packed).decode()) == RELEASE


@pytest.mark.parametrize("driver", ["secret", "configmap"])
def test_a_record_is_marked_failed_in_place_of_exactly_that_version(driver: Driver) -> None:
    record = read_record(driver, make_holder(driver, 3, "pending-upgrade"))

    failed = read_record(driver, mark_failed(driver, record, "interrupted: x"))

    assert (failed.revision, failed.status) == (3, "failed")
    assert failed.release["info"] == {"status": "failed", "description": "interrupted: x"}
    metadata = mark_failed(driver, record, "x")["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["resourceVersion"] == "7"
    assert "managedFields" not in metadata


def test_a_record_that_cannot_be_read_is_named() -> None:
    holder = {**make_holder("secret", 1, "deployed"), "data": {"release": "!"}}

    with pytest.raises(WorkFailed, match=r"sh\.helm\.release\.v1\.web\.v1.*cannot be read"):
        read_record("secret", holder)


def test_revisions_since_the_last_deployed_one_may_have_left_something() -> None:
    statuses = ["superseded", "deployed", "failed", "pending-upgrade"]
    records = [
        read_record("secret", make_holder("secret", revision, status))
        for revision, status in enumerate(statuses, start=1)
    ]

    assert [record.revision for record in list_since_deployed(records)] == [2, 3, 4]
    assert [record.revision for record in list_since_deployed(records[:1])] == [1]
