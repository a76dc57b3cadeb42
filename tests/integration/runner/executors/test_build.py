"""Build jobs: from an uploaded archive and from git to an artifact with its provenance."""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from exclave.base.archives import unpack_archive
from exclave.base.errors import Unavailable
from exclave.runner.builds.provenance import encode_for_signing
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.logs import Stream
from tests.integration.runner.executors.build_kit import KEY, Site, upload, uploaded
from tests.support.git import make_repo

MODULE = {"infra/db/main.tf": "# db", "infra/db/run.sh": "#!/bin/sh\n", "README": "x"}


async def test_an_uploaded_folder_becomes_an_artifact(tmp_path: Path) -> None:
    archive = upload(tmp_path / "app", MODULE)
    site = Site(tmp_path / "site", archive)

    outcome = await site.build(uploaded(archive))

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    artifact, provenance = site.fake.pushed
    assert artifact["artifact_type"] == "application/vnd.exclave.terraform_module.v1"
    assert artifact["layer_type"] == "application/vnd.exclave.source.v1.tar"
    assert outcome.outputs["files"] == 2
    assert outcome.outputs["size"] == len(artifact["data"])
    assert provenance["subject"].digest == outcome.outputs["digest"]
    (tmp_path / "layer.tar").write_bytes(artifact["data"])
    with (tmp_path / "layer.tar").open("rb") as data:
        unpack_archive(data, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"main.tf", "run.sh"}
    steps = [text for text in site.bench.texts(Stream.SYSTEM) if text.startswith("▸")]
    assert steps == [f"▸ step {name}" for name in ("fetch", "check", "pack", "push", "provenance")]


async def test_the_same_commit_is_the_same_artifact_wherever_it_is_built(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "git", MODULE)
    (repo.path / "infra/db/run.sh").chmod(0o755)
    commit = repo.commit({"infra/db/ü.tf": "#"})
    source = {"type": "git", "url": repo.url, "ref": "main", "directory": "infra/db"}

    first = await Site(tmp_path / "one").build(source)
    before = os.umask(0o077)
    try:
        second = await Site(tmp_path / "two").build({**source, "commit": commit})
    finally:
        os.umask(before)
    moved = repo.commit({"README": "y"})
    third = await Site(tmp_path / "three").build(source)

    assert first.state is OutcomeState.SUCCEEDED, first.message
    assert first.outputs["digest"] == second.outputs["digest"] == third.outputs["digest"]
    assert (first.outputs["commit"], third.outputs["commit"]) == (commit, moved)


async def test_a_folder_uploaded_or_from_git_is_the_same_artifact(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "git", MODULE)
    archive = upload(tmp_path / "app", MODULE)

    one = await Site(tmp_path / "one", archive).build(uploaded(archive))
    two = await Site(tmp_path / "two").build(
        {"type": "git", "url": repo.url, "ref": "main", "directory": "./infra/db/"}
    )

    assert one.outputs["digest"] == two.outputs["digest"]


async def test_the_provenance_names_source_commit_and_builder_and_is_signed(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "git", MODULE)
    site = Site(tmp_path / "site")

    outcome = await site.build(
        {"type": "git", "url": repo.url, "ref": "main", "directory": "infra/db"}
    )

    envelope = json.loads(site.fake.pushed[1]["data"])
    payload = base64.b64decode(envelope["payload"])
    signature = base64.b64decode(envelope["signatures"][0]["sig"])
    KEY.public_key().verify(signature, encode_for_signing(payload))
    statement = json.loads(payload)
    assert statement["subject"][0]["digest"]["sha256"] == (
        str(outcome.outputs["digest"]).removeprefix("sha256:")
    )
    made = statement["predicate"]["buildDefinition"]
    assert made["resolvedDependencies"][0] == {
        "uri": f"git+{repo.url}@main",
        "digest": {"gitCommit": outcome.outputs["commit"]},
    }
    layer = hashlib.sha256(site.fake.pushed[0]["data"]).hexdigest()
    assert made["resolvedDependencies"][1]["digest"] == {"sha256": layer}
    assert statement["predicate"]["runDetails"]["builder"]["id"] == (
        "urn:exclave:runner:run_" + "0" * 26
    )


@pytest.mark.parametrize(
    ("directory", "files", "words"),
    [
        ("infra/no", MODULE, "component `db`, step check: there is no folder `infra/no`"),
        (".", {"README": "x"}, "component `db`, step check: there is no Terraform module"),
    ],
)
async def test_a_failure_names_component_and_step(
    tmp_path: Path, directory: str, files: Mapping[str, str], words: str
) -> None:
    archive = upload(tmp_path / "app", files)

    outcome = await Site(tmp_path / "site", archive).build(uploaded(archive, directory))

    assert (outcome.state, outcome.reason) == (OutcomeState.FAILED, Reason.SOURCE_INVALID)
    assert outcome.message.startswith(words)


async def test_another_archive_than_the_ordered_one_is_refused(tmp_path: Path) -> None:
    archive = upload(tmp_path / "app", MODULE)

    outcome = await Site(tmp_path / "site", archive + b"\0").build(uploaded(archive))

    assert outcome.reason is Reason.ARTIFACT_TAMPERED
    assert "component `db`, step fetch" in outcome.message


async def test_a_hostile_archive_is_refused(tmp_path: Path) -> None:
    outcome = await Site(tmp_path / "site", b"no tar").build(uploaded(b"no tar"))

    assert outcome.reason is Reason.SOURCE_INVALID


async def test_a_registry_that_does_not_answer_is_told(tmp_path: Path) -> None:
    archive = upload(tmp_path / "app", MODULE)
    site = Site(tmp_path / "site", archive)
    site.fake.failure = Unavailable("nobody answers")

    outcome = await site.build(uploaded(archive))

    assert outcome.reason is Reason.ARTIFACT_UNAVAILABLE
    assert "component `db`, step push: nobody answers" in outcome.message


async def test_sources_of_actions_need_no_terraform(tmp_path: Path) -> None:
    archive = upload(tmp_path / "app", {"scripts/check.sh": "#!/bin/sh\n"})

    outcome = await Site(tmp_path / "site", archive).build(
        uploaded(archive, "scripts"), type="action_source", part="action:health:check"
    )

    assert outcome.state is OutcomeState.SUCCEEDED
