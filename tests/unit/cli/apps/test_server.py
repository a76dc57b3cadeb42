"""How `exclave apps sync` and `apps diff` look."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from exclave.cli.apps.findings import write_findings
from tests.unit.appconfig.directories import read_broken
from tests.unit.cli import samples
from tests.unit.cli.fake_control import TOKEN, WFL, Cli, FakeControl, make_id
from tests.unit.cli.verbs_apps import APP, config, diff, synced
from tests.unit.cli.verbs_apps import app as sample

SYNC = "/v1/apps/demo/sync"
DIFF = """\
+ component cache
~ component api
    vars.size: 1 → 2
    files of its source folder changed
~ action check
    steps[check].inline_contents:
      @@ -1 +1 @@
      -a
      +b
~ sandbox
    terraform_version: (none) → 1.11.3
- component old

Builds: component:api

Installs that would see a change once they are upgraded:
  prod (version 1): component:api

"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "demo"
    (folder / "components").mkdir(parents=True)
    (folder / "metadata.toml").write_text('version = "v2"\n')
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("x")
    return folder


def test_a_sync_shows_what_it_stored_and_where_the_builds_are(
    cli: Cli, fake: FakeControl, app: Path
) -> None:
    fake.answer("PUT", SYNC, synced())

    ran = cli("apps", "sync", str(app))

    assert (ran.code, ran.out) == (0, DIFF + "demo: version 2 is stored\n")
    assert ran.err == f"\nWatch the builds: exclave workflows watch {WFL}\n"


def test_the_directory_is_sent_as_one_archive(cli: Cli, fake: FakeControl, app: Path) -> None:
    fake.answer("PUT", SYNC, synced())
    (app / "installs").mkdir()
    (app / "installs/prod.toml").write_text('name = "prod"\n')

    ran = cli("apps", "sync", "demo", "--strict", "--dry-run")

    sent = fake.sent("PUT", SYNC)[0]
    with tarfile.open(fileobj=io.BytesIO(sent.content)) as tar:
        assert tar.getnames() == ["metadata.toml"]
    assert dict(sent.url.params) == {"strict": "true", "dry_run": "true"}
    assert "installs/ is not part of the app; `exclave installs sync` reads it." in ran.err


def test_a_dry_run_says_that_nothing_was_stored(cli: Cli, fake: FakeControl, app: Path) -> None:
    told = synced(dry_run=True, workflow_id=None, config=None, diff=diff(before=None, after=None))
    fake.answer("PUT", SYNC, told)

    ran = cli("apps", "sync", str(app), "--dry-run")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == DIFF + "demo: dry run, nothing was stored\n"


def test_an_unchanged_directory_is_told_in_one_line(cli: Cli, fake: FakeControl, app: Path) -> None:
    empty = diff(parts=[], builds=[], installs=[])
    fake.answer("PUT", SYNC, synced(changed=False, workflow_id=None, diff=empty))

    ran = cli("apps", "sync", str(app))

    assert (ran.code, ran.out) == (0, "demo: nothing changed, version 2 stays current\n")


def test_errors_look_like_those_of_validate(
    cli: Cli, fake: FakeControl, app: Path, tmp_path: Path
) -> None:
    reading = read_broken("missing_key", tmp_path / "broken")
    found = [
        {
            "severity": each.severity,
            "code": each.code,
            "file": each.file,
            "line": each.line,
            "column": each.column,
            "message": each.message,
            "hint": each.hint,
            "text": reading.sources[each.file].read_line(each.line),
        }
        for each in reading.diagnostics
    ]
    body = {
        "title": "x",
        "status": 422,
        "code": "app_invalid",
        "detail": "the app has 2 errors",
        "hint": "",
        "diagnostics": found,
        "components": 3,
    }
    fake.answer("PUT", SYNC, body, 422)

    ran = cli("apps", "sync", str(app))
    told = cli("apps", "sync", str(app), "--json")

    assert ran.out == write_findings(reading, colour=False).replace("acme:", "demo:") + "\n"
    assert (ran.code, ran.err) == (1, "Nothing was stored.\n")
    assert told.code == 1
    assert json.loads(told.out)["diagnostics"] == found
    assert json.loads(told.out)["ok"] is False


def test_warnings_stand_before_what_was_stored(cli: Cli, fake: FakeControl, app: Path) -> None:
    warning = {
        "severity": "warning",
        "code": "unknown_key",
        "file": "metadata.toml",
        "line": 2,
        "column": 1,
        "message": "unknown key `x`",
        "hint": "Remove it.",
        "text": "x = 1",
    }
    empty = diff(parts=[], builds=[], installs=[])
    fake.answer("PUT", SYNC, synced(findings=[warning], diff=empty, workflow_id=None))

    ran = cli("apps", "sync", str(app))

    assert ran.out == (
        "warning[unknown_key]: unknown key `x`\n"
        "  --> metadata.toml:2:1\n"
        "  |\n"
        "2 | x = 1\n"
        "  | ^\n"
        "  = hint: Remove it.\n"
        "  = docs: docs/reference/app-config/diagnostics.md#unknown_key\n"
        "\n"
        "demo: version 2 is stored\n"
    )


def test_what_others_wrote_cannot_command_the_terminal(
    cli: Cli, fake: FakeControl, app: Path
) -> None:
    evil = {
        "path": "a\x1b[2J",
        "before": "\x1b]0;x\x07",
        "after": "b\n\x1b[31m",
        "diff": "+\x1b[2J",
    }
    part = {"section": "component", "name": "x\x1b[1m", "change": "odd", "fields": [evil]}
    fake.answer("PUT", SYNC, synced(diff=diff(parts=[part])))

    ran = cli("apps", "sync", str(app))

    assert ran.code == 0
    assert "\x1b" not in ran.out


def test_other_problems_are_told_as_ever(cli: Cli, fake: FakeControl, app: Path) -> None:
    fake.refuse("PUT", SYNC, 404, "not_found", "there is no such app", "Create it.")

    ran = cli("apps", "sync", str(app))

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: there is no such app\n\nhint: Create it.\n"


def test_a_refusal_that_says_nothing_is_no_bug(cli: Cli, fake: FakeControl, app: Path) -> None:
    fake.refuse("PUT", SYNC, 422, "app_invalid", "bad")

    assert cli("apps", "sync", str(app)).code == 2


def test_a_directory_that_is_not_there_is_told_before_anything_is_sent(
    cli: Cli, fake: FakeControl
) -> None:
    ran = cli("apps", "sync", "nowhere")

    assert (ran.code, fake.requests) == (2, [])
    assert "there is no directory" in ran.err


def test_wait_watches_the_builds(cli: Cli, fake: FakeControl, app: Path) -> None:
    done = samples.workflow(samples.plan(), state="succeeded")
    fake.answer("PUT", SYNC, synced())
    fake.answer("GET", f"/v1/workflows/{WFL}", done)

    ran = cli("apps", "sync", str(app), "--wait")
    told = cli("apps", "sync", str(app), "--wait", "--json")

    assert ran.code == 0
    assert "succeeded" in ran.out
    assert json.loads(told.out.splitlines()[0])["event"] == "sync"


def test_many_lines_and_many_installs_are_cut(cli: Cli, fake: FakeControl) -> None:
    long = "\n".join(f"+{number}" for number in range(70))
    change = {"path": "readme", "before": "", "after": "x\n", "diff": long}
    part = {"section": "metadata", "name": "", "change": "changed", "fields": [change]}
    fake.answer("GET", "/v1/apps/demo/diff", diff(parts=[part], more_installs=7))

    ran = cli("apps", "diff", "demo", "1", "2")

    assert "… and 10 more lines; --json has them all" in ran.out
    assert "  and 7 more" in ran.out


def test_versions_with_the_same_content_are_told_so(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", "/v1/apps/demo/diff", diff(parts=[], builds=[], installs=[]))

    assert cli("apps", "diff", "demo", "1", "2").out == (
        "Versions 1 and 2 have the same content.\n"
    )


def test_an_app_that_was_never_synced_is_listed_too(cli: Cli, fake: FakeControl) -> None:
    app = {
        "id": make_id("app"),
        "name": "new",
        "created_at": config()["created_at"],
        "created_by": "ada",
        "installs": 0,
        "config": None,
    }
    fake.answer("GET", "/v1/apps", samples.page(app))

    assert "new   never synced  0" in cli("apps", "list").out


def test_a_token_can_reach_one_app_only(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", "/v1/apps/demo", sample())
    fake.answer("POST", "/v1/tokens", samples.token() | {"token": TOKEN})

    ran = cli("tokens", "create", "ci", "--role", "operator", "--app", "demo")

    sent = json.loads(fake.sent("POST", "/v1/tokens")[0].content)
    assert sent["grants"] == [{"role": "operator", "scope": "app", "scope_id": APP}]
    assert ran.code == 0
    assert cli("tokens", "create", "ci", "--app", "a", "--install", "b").code == 2
