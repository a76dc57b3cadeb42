import json
from pathlib import Path

import pytest

from tests.unit.cli import samples
from tests.unit.cli.fake_control import INS, QUE, Cli, FakeControl

TOML = """
name = "deploy"

[[steps]]
name = "plan"
job = { kind = "script", steps = [{ name = "say", argv = ["echo", "hello"] }] }

[[steps]]
name = "ok"
kind = "gate"
needs = ["plan"]
"""


@pytest.fixture
def ready(fake: FakeControl) -> FakeControl:
    fake.answer("POST", "/v1/workflows", samples.workflow(), 202)
    fake.answer("GET", "/v1/installs", samples.page(samples.install()))
    fake.answer("GET", "/v1/org", samples.org())
    return fake


def test_a_toml_file_runs_on_the_install_that_is_named(
    cli: Cli, ready: FakeControl, tmp_path: Path
) -> None:
    file = tmp_path / "flow.toml"
    file.write_text(TOML)

    ran = cli("workflows", "run", str(file), "--install", "customer-one", "--plan-only")

    sent = json.loads(ready.requests[-1].content)
    assert ran.code == 0
    assert (sent["queue_id"], sent["plan_only"], sent["approve_all"]) == (INS, True, False)
    assert sent["steps"][0]["job"]["steps"][0]["argv"] == ["echo", "hello"]
    assert sent["steps"][1]["needs"] == ["plan"]


def test_a_json_file_runs_on_the_build_queue(cli: Cli, ready: FakeControl, tmp_path: Path) -> None:
    file = tmp_path / "flow.json"
    file.write_text('{"name": "build", "steps": [{"name": "one", "job": {"kind": "noop"}}]}')

    ran = cli("workflows", "run", str(file), "--build", "--approve-all")

    sent = json.loads(ready.requests[-1].content)
    assert ran.code == 0
    assert (sent["queue_id"], sent["approve_all"]) == (QUE, True)


def test_stdin_may_be_either_language(cli: Cli, ready: FakeControl) -> None:
    as_json = '\n{"name": "a", "steps": [{"name": "one", "job": {"kind": "noop"}}]}'

    assert cli("workflows", "run", "-", "--install", INS, stdin=TOML).code == 0
    assert cli("workflows", "run", "-", "--install", INS, stdin=as_json).code == 0


def test_all_mistakes_are_told_at_once_with_their_places(cli: Cli, fake: FakeControl) -> None:
    text = json.dumps(
        {
            "name": "Deploy",
            "queue_id": INS,
            "colour": "red",
            "steps": [{"name": "a"}, {"name": "b", "job": {"kind": "noop"}, "mutating": True}],
        }
    )

    ran = cli("workflows", "run", "-", stdin=text)

    assert (ran.code, fake.requests) == (2, [])
    assert ran.err.count("\n  - ") == 4
    assert "  - name: String should match pattern" in ran.err
    assert "  - steps[0]: step `a`: `job` belongs to steps of kind `job`" in ran.err
    assert "  - steps[1]: step `b`: a mutating step names the lanes" in ran.err
    assert "  - colour: Extra inputs are not permitted (given: 'red')" in ran.err


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("flow.json", "{,}", "flow.json is not valid JSON: "),
        ("flow.toml", "name = ", "flow.toml is not valid TOML: "),
        ("flow.json", "[]", "flow.json does not hold an object"),
        (
            "flow.json",
            '{"name": "a", "steps": []}',
            "pass --install NAME or --build, or set `queue_id` in the file",
        ),
        (
            "flow.json",
            '{"queue_id": "x", "steps": [{"name": "a", "job": {"kind": "noop"}, "lanes": ["attic"]}]}',
            "`attic` is not a lane",
        ),
    ],
)
def test_a_bad_file_is_refused_before_anything_is_sent(
    name: str, text: str, expected: str, cli: Cli, fake: FakeControl, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)

    ran = cli("workflows", "run", str(tmp_path / name))

    assert (ran.code, fake.requests) == (2, [])
    assert expected in ran.err


def test_a_missing_or_binary_file_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "photo.json").write_bytes(b"\xff\xfe")

    assert (
        "none.json: No such file or directory"
        in cli("workflows", "run", str(tmp_path / "none.json")).err
    )
    assert (
        "photo.json: it is not UTF-8 text"
        in cli("workflows", "run", str(tmp_path / "photo.json")).err
    )


def test_an_unknown_install_is_told_without_guessing(cli: Cli, ready: FakeControl) -> None:
    ran = cli("installs", "get", "customer-two")

    assert ran.code == 1
    assert "error: there is no install `customer-two`" in ran.err


def test_lists_go_over_pages_up_to_the_limit(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", "/v1/installs", samples.page(*[samples.install()] * 200, following="c1"))
    fake.answer("GET", "/v1/installs", samples.page(*[samples.install()] * 50, following="c2"))

    ran = cli("installs", "list", "--limit", "250")

    assert len(ran.out.splitlines()) == 251
    assert [dict(each.url.params) for each in fake.requests] == [
        {"limit": "200"},
        {"cursor": "c1", "limit": "50"},
    ]
    assert ran.err == "There are more results: add --cursor c2\n"


def test_an_empty_list_is_said_aloud(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", "/v1/jobs", samples.page())

    ran = cli("jobs", "list")

    assert (ran.code, ran.out, ran.err) == (0, "", "Nothing found.\n")
