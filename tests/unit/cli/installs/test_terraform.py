"""Restoring a state: what is asked, what is warned of, what is refused before anything is sent."""

import json

import pytest

from tests.unit.cli.fake_control import EXE, INS, Cli, FakeControl
from tests.unit.cli.verbs_terraform import detail, state

PATH = f"/v1/installs/{INS}/tf-states/component%3Adb"
RESTORE = f"installs tf-state restore {INS} component:db --reason mistaken"


def prepare(fake: FakeControl, *known: dict[str, str]) -> None:
    """Let version 2 know of these resources, and the current one of a bucket."""
    older = state(version=2, serial=2, resources=list(known))
    fake.answer("GET", PATH, detail(newest=older, lock=None))
    fake.answer("GET", PATH, detail(lock=None))
    restored = state(version=4, serial=8, restored_from=2)
    fake.answer("POST", f"{PATH}/restore", detail(newest=restored, lock=None))


def test_an_older_version_is_asked_for_by_its_number(cli: Cli, fake: FakeControl) -> None:
    prepare(fake, *state()["resources"])

    ran = cli(*f"{RESTORE} --version 2 --yes".split())

    body = json.loads(fake.sent("POST", f"{PATH}/restore")[0].content)
    assert (ran.code, body["version"], body["reason"]) == (0, 2, "mistaken"), ran.err
    assert "restored   from version 2" in ran.out
    assert "forget" not in ran.err


def test_what_the_older_version_does_not_know_is_named_first(cli: Cli, fake: FakeControl) -> None:
    prepare(fake)

    ran = cli(*f"{RESTORE} --version 2 --yes --json".split())

    assert json.loads(ran.out)["newest"]["restored_from"] == 2
    told = 'Version 2 does not contain `aws_s3_bucket.b["x"]` (bucket-1): it will no longer be managed.'
    assert told in ran.err


@pytest.mark.parametrize("more", ["--yes", f"{EXE} --version 2 --yes", "--version 0 --yes"])
def test_what_cannot_be_meant_is_refused_at_once(cli: Cli, fake: FakeControl, more: str) -> None:
    ran = cli(*RESTORE.split(), *more.split())

    assert ran.code == 2
    assert "version" in ran.err
    assert fake.requests == []
