"""Grants and pieces of uploads come back from their stored form as they were."""

import json
from datetime import UTC, datetime

from exclave.domain.accounts import read_grants, write_grants
from exclave.domain.identity import Grant, OrgId, QueueId, Role, ScopeKind
from exclave.domain.jobs import ExecutionId
from exclave.domain.terraform import StateVersion
from exclave.domain.uploads import UploadPart, read_parts, write_parts

AT = datetime(2026, 1, 2, tzinfo=UTC)


def test_grants_survive_being_stored() -> None:
    grants = (Grant(Role.ADMIN), Grant(Role.VIEWER, ScopeKind.INSTALL, "ins_1"))

    stored = json.loads(json.dumps(write_grants(grants)))

    assert read_grants(stored) == grants


def test_pieces_of_an_upload_survive_being_stored() -> None:
    parts = (UploadPart("registry/a", 3, "sha256:1"), UploadPart("registry/b", 4, "sha256:2"))

    stored = json.loads(json.dumps(write_parts(parts)))

    assert read_parts(stored) == parts


def test_the_origin_of_a_restored_version_is_the_one_that_was_written() -> None:
    written, restored = make_version(2, None), make_version(5, restored_from=2)

    assert (written.origin, restored.origin) == (2, 2)


def make_version(version: int, restored_from: int | None) -> StateVersion:
    return StateVersion(
        org_id=OrgId("org_1"),
        queue_id=QueueId("ins_1"),
        workspace="sandbox",
        version=version,
        serial=version,
        lineage="line",
        sha256="0" * 64,
        size=1,
        blob="tf-states/a",
        resources=(),
        epoch=1,
        execution_id=ExecutionId("exe_1"),
        at=AT,
        restored_from=restored_from,
    )
