"""`exclave installs`: files, many installs at once, differences, and what people type wrong."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.cli import samples
from tests.unit.cli.fake_control import INS, WFL, Cli, FakeControl, make_id
from tests.unit.cli.verbs_installs import app_install, changed, detail, part, state, upgrade

FILE = """
name = "customer-one"
approval_option = "approve-all"

[inputs]
domain = "acme.test"

[labels]
tier = "gold"
"""


def synced(action: str = "create", **more: Any) -> dict[str, Any]:
    each = {
        "name": "customer-one",
        "action": action,
        "install_id": None,
        "warnings": [],
        "problem": "",
        "hint": "",
        "changes": [{"what": "inputs.domain", "before": None, "after": "acme.test"}],
        "workflow_id": None,
    }
    return {"applied": True, "installs": [each | more]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "shop" / "installs"
    made.mkdir(parents=True)
    (made / "one.toml").write_text(FILE)
    return made


def read_body(request: httpx.Request) -> Any:
    return json.loads(request.content)


def test_files_become_installs_after_a_look(cli: Cli, fake: FakeControl, folder: Path) -> None:
    fake.answer("POST", "/v1/install-configs", synced())
    fake.answer("POST", "/v1/install-configs", synced(workflow_id=WFL, install_id=INS))

    ran = cli("installs", "sync", str(folder), "--yes")

    look, real = [read_body(each) for each in fake.sent("POST", "/v1/install-configs")]
    assert (look["dry_run"], real["dry_run"]) == (True, False)
    assert real["app"] == "shop"
    assert real["installs"] == [
        {
            "name": "customer-one",
            "approval_option": "approve-all",
            "inputs": {"domain": "acme.test"},
            "component_toggles": {},
            "components": {},
            "labels": {"tier": "gold"},
            "region": "",
            "account": "",
            "tenant": "",
        }
    ]
    assert ran.out == f"customer-one: created  exclave workflows watch {WFL}\n"
    assert "customer-one: is created\n  inputs.domain: acme.test\n" in ran.err
    assert ran.code == 0


def test_nothing_is_changed_unseen(cli: Cli, fake: FakeControl, folder: Path) -> None:
    fake.answer("POST", "/v1/install-configs", synced("update"))

    ran = cli("installs", "sync", str(folder / "one.toml"), "--app", "shop")

    assert (ran.code, ran.out) == (2, "")
    assert "Add --yes if you are sure." in ran.err
    assert len(fake.sent("POST", "/v1/install-configs")) == 1


@pytest.mark.parametrize("more", [["--dry-run"], []])
def test_a_refused_file_stops_all(
    cli: Cli, fake: FakeControl, folder: Path, more: list[str]
) -> None:
    refused = synced("refuse", problem="it is managed by hand", hint="Do this.", changes=[])
    fake.answer("POST", "/v1/install-configs", refused | {"applied": False})

    ran = cli("installs", "sync", str(folder), "--yes", *more)

    assert ran.code == 1
    assert (
        "customer-one: cannot be changed\n  error: it is managed by hand\n  hint: Do this."
        in ran.out
    )
    assert len(fake.sent("POST", "/v1/install-configs")) == 1


def test_the_app_directory_itself_may_be_named(cli: Cli, fake: FakeControl, folder: Path) -> None:
    (folder.parent / "metadata.toml").write_text('version = "v2"\n')
    fake.answer("POST", "/v1/install-configs", synced("none", changes=[]))

    ran = cli("installs", "sync", str(folder.parent), "--json")

    assert json.loads(ran.out)["installs"][0]["action"] == "none"
    assert read_body(fake.requests[0])["app"] == "shop"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = ", "one.toml:1"),
        ('nmae = "x"', "Did you mean `name`?"),
        (
            'name = "a"\n[stack_overrides]\nvpc_nested_template_url = "https://x.test/v"',
            "`stack_overrides` of an install is not supported yet",
        ),
        ('name = "a"\napproval_option = "never"', "approval_option"),
        ('name = "a"\n[labels]\nx = "{{ .nuon.id }}"', "the label `x` is a template"),
        ('name = "Not A Name"', "name: String should match pattern"),
    ],
)
def test_a_bad_file_is_told_with_its_place(
    cli: Cli, fake: FakeControl, folder: Path, text: str, told: str
) -> None:
    (folder / "one.toml").write_text(text)

    ran = cli("installs", "sync", str(folder), "--yes")

    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert fake.requests == []


@pytest.mark.parametrize("path", ["nowhere", "empty"])
def test_no_file_is_an_error(cli: Cli, tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()

    assert cli("installs", "sync", path).code == 2


def test_inputs_come_from_a_file_and_the_command_line_wins(
    cli: Cli, fake: FakeControl, tmp_path: Path
) -> None:
    file = tmp_path / "values.toml"
    file.write_text('[inputs]\na = "x"\nb = 3\nc = true\nd = ["e", 1]\nf = 1.5\n')
    fake.answer("POST", f"/v1/installs/{INS}/inputs", changed("a"))

    ran = cli("installs", "inputs", "set", INS, "a=y", "--inputs-file", str(file))

    assert read_body(fake.requests[-1])["values"] == {
        "a": "y",
        "b": "3",
        "c": "true",
        "d": '["e", 1]',
        "f": "1.5",
    }
    assert "No component that uses it is deployed yet." in ran.err
    assert ran.code == 0


def test_unchanged_inputs_start_nothing(cli: Cli, fake: FakeControl) -> None:
    fake.answer("POST", f"/v1/installs/{INS}/inputs", changed())

    ran = cli("installs", "inputs", "set", INS, "a=y", "--wait")

    assert (ran.code, ran.out, ran.err) == (0, "", "No value changed; nothing was started.\n")


def test_a_wait_ends_with_the_workflow(cli: Cli, fake: FakeControl) -> None:
    failed = samples.workflow(samples.plan("failed"), state="failed")
    fake.answer("POST", f"/v1/installs/{INS}/workflows", samples.workflow(samples.plan("failed")))
    fake.answer("GET", f"/v1/workflows/{WFL}", failed)
    fake.stream(f"/v1/workflows/{WFL}/stream")
    fake.answer("GET", "/v1/jobs/job_00000000000000000000000001/logs", samples.log_page())
    fake.stream("/v1/jobs/job_00000000000000000000000001/logs/stream")

    ran = cli("installs", "deploy", INS, "--all", "--wait")

    assert ran.code == 1
    assert "workflow deploy failed" in ran.out


@pytest.mark.parametrize(
    ("drift", "told"),
    [
        ("none", "Nothing has drifted.\n"),
        ("drifted", "Drifted: component:api. How: exclave workflows plan customer-one\n"),
    ],
)
def test_a_drift_scan_that_was_waited_for_tells_what_it_found(
    cli: Cli, fake: FakeControl, drift: str, told: str
) -> None:
    done = samples.workflow(samples.step("scan", "succeeded"), state="succeeded")
    fake.answer("POST", f"/v1/installs/{INS}/workflows", done)
    fake.answer("GET", f"/v1/workflows/{WFL}", done)
    fake.stream(f"/v1/workflows/{WFL}/stream")
    parts = [part("component:api", drift=drift)]
    fake.answer("GET", f"/v1/installs/{INS}", detail() | {"parts": parts})

    ran = cli("installs", "drift", INS, "--wait")

    assert ran.code == 0
    assert told in ran.err
    assert ("exclave installs deploy customer-one api" in ran.err) == (drift == "drifted")


def test_many_installs_are_moved_one_by_one(cli: Cli, fake: FakeControl) -> None:
    other = make_id("ins", 2)
    found = [app_install(), app_install(id=other, name="customer-two"), samples.install()]
    fake.answer("GET", "/v1/installs", samples.page(*found))
    fake.answer("POST", f"/v1/installs/{INS}/upgrade", upgrade())
    fake.refuse(
        "POST", f"/v1/installs/{other}/upgrade", 409, "conflict", "it runs `old`", "Tear it down."
    )

    ran = cli("installs", "upgrade", "--label", "tier=gold", "--app", "shop", "--yes")

    assert ran.code == 1
    assert f"error: {other}: it runs `old`\nhint: Tear it down." in ran.err
    assert ran.out == "customer-one: now at config 4\n"
    listed = fake.sent("GET", "/v1/installs")[0].url.params
    assert (listed["app"], listed["label"]) == ("shop", "tier=gold")
    assert [
        read_body(each)["dry_run"] for each in fake.sent("POST", f"/v1/installs/{INS}/upgrade")
    ] == [True, False]


@pytest.mark.parametrize(
    ("drifted", "command"),
    [
        (["component:api", "component:db"], "exclave installs deploy customer-one api db\n"),
        (["sandbox", "component:api"], "exclave installs reprovision customer-one\n"),
    ],
)
def test_the_way_back_from_drift_is_a_command_that_works(
    cli: Cli, fake: FakeControl, drifted: list[str], command: str
) -> None:
    parts = [part(name, drift="drifted") for name in drifted]
    fake.answer("GET", f"/v1/installs/{INS}", detail() | {"parts": parts})

    assert f"Repair it: {command}" in cli("installs", "get", INS).err


def test_an_upgrade_shows_what_differs(cli: Cli, fake: FakeControl) -> None:
    fake.answer("POST", f"/v1/installs/{INS}/upgrade", upgrade())

    ran = cli("installs", "upgrade", INS, "--dry-run")

    assert ran.code == 0
    assert ran.out == (
        "customer-one: config 3 -> 4\n  ~ component:api\n  + secret:token\n  ~ value of input replicas\n"
        "  - value of input old\n  ! the customer has to enter more values; their Stack is informed by the upgrade\n"
    )


STUCK = {"obstacles": [{"message": "the input `size`: it is required", "hint": "Give it."}]}


def test_a_dry_run_shows_what_differs_and_what_is_in_the_way(cli: Cli, fake: FakeControl) -> None:
    fake.answer("POST", f"/v1/installs/{INS}/upgrade", upgrade(**STUCK))

    ran = cli("installs", "upgrade", INS, "--dry-run")

    assert ran.code == 1
    assert "  ~ component:api\n" in ran.out
    assert ran.out.endswith("not possible yet: the input `size`: it is required\n    Give it.\n")


def test_nobody_is_asked_about_a_move_that_is_not_possible(cli: Cli, fake: FakeControl) -> None:
    fake.answer("POST", f"/v1/installs/{INS}/upgrade", upgrade(**STUCK))

    ran = cli("installs", "upgrade", INS, can_ask=True)

    assert ran.code == 1
    assert ran.err == "error: the input `size`: it is required\n\nhint: Give it.\n"
    sent = fake.sent("POST", f"/v1/installs/{INS}/upgrade")
    assert [read_body(each)["dry_run"] for each in sent] == [True]


def test_one_that_cannot_move_does_not_stop_the_others(cli: Cli, fake: FakeControl) -> None:
    other = make_id("ins", 2)
    fake.answer("POST", f"/v1/installs/{INS}/upgrade", upgrade())
    stuck = upgrade(install_id=other, name="customer-two", **STUCK)
    fake.answer("POST", f"/v1/installs/{other}/upgrade", stuck)

    ran = cli("installs", "upgrade", INS, other, "--yes")

    assert ran.code == 1
    assert "error: customer-two: the input `size`: it is required\nhint: Give it.\n" in ran.err
    assert ran.out == "customer-one: now at config 4\n"
    assert len(fake.sent("POST", f"/v1/installs/{other}/upgrade")) == 1


def test_an_install_that_is_there_already_is_left_alone(cli: Cli, fake: FakeControl) -> None:
    same = upgrade(to_version=3, parts=[], changed_inputs=[], dropped_inputs=[], new_stack=False)
    fake.answer("POST", f"/v1/installs/{INS}/upgrade", same)

    ran = cli("installs", "upgrade", INS)

    assert (ran.code, ran.out) == (0, "customer-one: already at config 3\n")


def test_two_versions_of_the_state_are_compared(cli: Cli, fake: FakeControl) -> None:
    new = state(7, inputs={"inputs": {"domain": "new.test", "size": 3}})
    old = state(6, gone=[1])
    fake.answer("GET", f"/v1/installs/{INS}/state", new)
    fake.answer("GET", f"/v1/installs/{INS}/state", old)

    ran = cli("installs", "state", INS, "--diff")

    assert ran.out == (
        '- .gone = [1]\n~ .inputs.inputs.domain = "acme.test" -> "new.test"\n+ .inputs.inputs.size = 3\n'
    )
    assert [each.url.params.get("version") for each in fake.requests] == [None, "6"]


def test_the_state_of_a_time(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", f"/v1/installs/{INS}/state", state())

    ran = cli("installs", "state", INS, "--at", "2030-01-02T03:04:05", "--json")

    assert json.loads(ran.out)["version"] == 7
    assert fake.requests[0].url.params["at"] == "2030-01-02T03:04:05+00:00"


def test_labels_are_set_taken_away_and_kept(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", f"/v1/installs/{INS}", detail(labels={"a": "1", "b": "2"}))
    fake.answer("PUT", f"/v1/installs/{INS}/labels", app_install(labels={"b": "2", "c": "3-"}))

    ran = cli("installs", "labels", INS, "a-", "c=3-")

    assert read_body(fake.requests[-1]) == {"labels": {"b": "2", "c": "3-"}}
    assert ran.out == "b=2 c=3-\n"


def test_labels_are_only_shown_without_any(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", f"/v1/installs/{INS}", detail())

    assert cli("installs", "labels", INS).out == "tier=gold\n"


def test_get_says_what_to_do_next(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", f"/v1/installs/{INS}", detail())

    ran = cli("installs", "get", INS)

    assert "exclave installs orphans customer-one" in ran.err
    assert "exclave installs upgrade customer-one --dry-run" in ran.err
    assert "exclave installs deploy customer-one --all" in ran.err
    assert "vm-1  late" in ran.out


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ("provisioning", "exclave workflows get customer-one"),
        ("failed", "exclave installs provision customer-one"),
        ("deprovisioned", "exclave installs delete customer-one"),
    ],
)
def test_get_tells_the_way_out_of_each_state(
    cli: Cli, fake: FakeControl, now: str, told: str
) -> None:
    gone = samples.runner() | {"state": "revoked", "presence": "up"}
    long = part("sandbox", state="failed", message=f"it broke {'x' * 200}\nin line 3")
    answer = detail(state=now) | {"runners": [gone], "parts": [long]}
    fake.answer("GET", f"/v1/installs/{INS}", answer)

    ran = cli("installs", "get", INS)

    assert told in ran.err
    assert "vm-1  revoked" in ran.out
    assert f"it broke {'x' * 91}…\n" in ran.out


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["deploy", INS], "pass component names or --all, not both"),
        (["deploy", INS, "api", "--all"], "pass component names or --all, not both"),
        (["teardown", INS, "--yes"], "pass component names or --all, not both"),
        (["upgrade"], "pass installs, --label or --all"),
        (["upgrade", INS, "--all"], "pass installs, --label or --all"),
        (["inputs", "set", INS], "there is nothing to set"),
        (["inputs", "set", INS, "novalue"], "`novalue` is not a key=value"),
        (["inputs", "set", INS, "a=1", "--inputs-file", "none.toml"], "cannot read none.toml"),
        (["inputs", "get", INS, "--version", "0"], "'--version'"),
        (["inputs", "sett", INS], "Did you mean `set`?"),
        (["state", INS, "--at", "soon"], "`soon` is not a time"),
        (["state", INS, "--at", "2030-01-01", "--version", "1"], "not both"),
        (["approve-all", INS, "perhaps"], "'perhaps' is not one of"),
        (["approve-all", INS, "on"], "needs a confirmation"),
        (["delete", INS], "needs a confirmation"),
        (["deprovision", INS], "needs a confirmation"),
        (["create", "shop"], "Missing option '--name'"),
        (["create", "shop", "--name", "A B"], "name: String should match pattern"),
        (["get", "NOT A NAME"], "there is no install"),
    ],
)
def test_bad_input_is_told_and_nothing_is_sent(
    cli: Cli, fake: FakeControl, argv: list[str], told: str
) -> None:
    ran = cli("installs", *argv)

    assert ran.code in {1, 2}
    assert told in ran.err
    assert fake.requests == []
