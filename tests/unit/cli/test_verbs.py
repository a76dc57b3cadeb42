import json
from collections.abc import Iterator

import click
import pytest

from exclave.cli.apps import server as apps_sync
from exclave.cli.root import build_root
from tests.unit.cli.fake_control import TOKEN, URL, Cli, FakeControl
from tests.unit.cli.verbs import VERBS, Verb
from tests.unit.cli.verbs_actions import ACTION_VERBS
from tests.unit.cli.verbs_apps import APP_VERBS
from tests.unit.cli.verbs_builds import BUILD_VERBS
from tests.unit.cli.verbs_drift import DRIFT_VERBS
from tests.unit.cli.verbs_installs import INSTALL_VERBS
from tests.unit.cli.verbs_terraform import TERRAFORM_VERBS

ALL = VERBS | ACTION_VERBS | APP_VERBS | BUILD_VERBS | DRIFT_VERBS | INSTALL_VERBS | TERRAFORM_VERBS
ROWS = [pytest.param(name, row, id=name.replace(" ", "-")) for name, row in ALL.items()]


OFFLINE = {"apps"}
"""Nouns with verbs that talk to no server; those have tests of their own."""
WITH_FILES = {"installs sync"}
"""Verbs that read files of the app first; they have tests of their own too."""


def list_verbs() -> set[str]:
    root = build_root()
    found = set(list_below("apps", apps_sync.group))
    for noun in sorted(set(root.list_commands(click.Context(root))) - OFFLINE):
        group = root.get_command(click.Context(root), noun)
        assert isinstance(group, click.Group)
        found |= set(list_below(noun, group))
    return found - WITH_FILES


def list_below(name: str, group: click.Group) -> Iterator[str]:
    for verb, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from list_below(f"{name} {verb}", command)
        else:
            yield f"{name} {verb}"


def call(cli: Cli, name: str, row: Verb, *more: str) -> tuple[int, str, str]:
    ran = cli(*name.split(), *row.argv.split(), *more, stdin=row.stdin, env=row.env)
    return ran.code, ran.out, ran.err


def test_every_verb_has_a_row() -> None:
    assert list_verbs() == set(ALL)


_READS_REGISTRY = frozenset({"builds sbom"})
"""Verbs that also talk to the registry, with a credential of its own."""


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_verb_shows_its_answer_on_stdout_and_talks_on_stderr(
    name: str, row: Verb, cli: Cli, fake: FakeControl
) -> None:
    row.prepare(fake)

    code, out, err = call(cli, name, row)

    assert (code, "error" in err) == (0, False), err
    assert row.shows in out
    assert row.says in err
    assert bool(out) == bool(row.shows)


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_verb_answers_in_json_and_nothing_else(
    name: str, row: Verb, cli: Cli, fake: FakeControl
) -> None:
    row.prepare(fake)

    code, out, _ = call(cli, name, row, "--json")

    assert code == 0
    for document in out.splitlines() if row.lines else [out]:
        assert isinstance(json.loads(document), dict)


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_verb_sends_the_token_and_a_body_of_the_contract(
    name: str, row: Verb, cli: Cli, fake: FakeControl
) -> None:
    row.prepare(fake)

    call(cli, name, row)

    sent = [each for each in fake.requests if str(each.url).startswith(URL)]
    elsewhere = [each for each in fake.requests if each not in sent]
    assert all(each.headers["Authorization"] == f"Bearer {TOKEN}" for each in sent)
    assert not elsewhere or name in _READS_REGISTRY
    assert not [each for each in elsewhere if TOKEN in str(each.headers)]
    posts = [each for each in sent if each.method == "POST"]
    assert all(each.headers["Idempotency-Key"] for each in posts)
    if row.body is not None:
        assert json.loads(sent[-1].content) == row.body


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_verb_refuses_an_unknown_option_as_usage(name: str, row: Verb, cli: Cli) -> None:
    code, out, err = call(cli, name, row, "--wrong")

    assert (code, out) == (2, "")
    assert "error: No such option" in err
    assert f"hint: See `exclave {name} --help`." in err


@pytest.mark.parametrize(("name", "row"), [row for row in ROWS if row.id != "auth-logout"])
def test_a_verb_reports_a_refused_token(name: str, row: Verb, cli: Cli, fake: FakeControl) -> None:
    for route in [*row.answers, "GET /v1/installs"]:
        method, path = route.split()
        fake.refuse(method, path, 401, "unauthenticated", "the token has expired", "Log in again.")

    code, out, err = call(cli, name, row)

    assert (code, out) == (1, "")
    assert err == "error: the token has expired\n\nhint: Log in again.\n"
