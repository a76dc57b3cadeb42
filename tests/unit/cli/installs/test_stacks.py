"""`exclave installs stack`: one file or several, printed, written, or as JSON."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.fake_control import INS, Cli, FakeControl
from tests.unit.cli.samples import Json
from tests.unit.cli.verbs_installs import stack

ROUTE = f"/v1/installs/{INS}/stack"
LINE = "curl -fsS https://r.test/v1/stacks/xcs_1/local.py | python3 -"


def several() -> Json:
    """A Stack of two files with a link, as a cloud has it."""
    one = stack()
    (script,) = one["files"]
    url = "https://r.test/v1/stacks/xcs_1/readme.md"
    more = script | {"name": "readme.md", "url": url, "content": "# Read me\n", "size": 10}
    link = {"title": "Open the console", "url": "https://console.test/new"}
    instructions = one["instructions"] | {"links": [link]}
    return one | {"files": [script, more], "instructions": instructions}


def test_the_only_file_is_written_for_its_owner_and_the_line_is_printed(
    cli: Cli, fake: FakeControl, tmp_path: Path
) -> None:
    fake.answer("POST", ROUTE, stack())
    file = tmp_path / "stack.py"
    file.write_text("old")

    ran = cli("installs", "stack", INS, "-o", str(file))

    assert (ran.code, ran.out) == (0, f"{LINE}\n")
    assert file.read_text() == "print('the script')\n"
    assert file.stat().st_mode & 0o777 == 0o700
    assert f"Wrote {file}." in ran.err


def test_the_only_file_goes_into_a_folder_that_exists_under_its_own_name(
    cli: Cli, fake: FakeControl, tmp_path: Path
) -> None:
    fake.answer("POST", ROUTE, stack())

    ran = cli("installs", "stack", INS, "-o", str(tmp_path))

    assert ran.code == 0
    assert [file.name for file in tmp_path.iterdir()] == ["local.py"]


def test_several_files_are_listed_with_their_addresses_and_instructions(
    cli: Cli, fake: FakeControl
) -> None:
    fake.answer("POST", ROUTE, several())

    ran = cli("installs", "stack", INS)

    lines = ran.out.splitlines()
    assert lines[1] == "local.py   20     https://r.test/v1/stacks/xcs_1/local.py"
    assert lines[2] == "readme.md  10     https://r.test/v1/stacks/xcs_1/readme.md"
    assert "Run the script. Valid until" in ran.err
    assert "  Open the console: https://console.test/new\n" in ran.err
    assert f"  {LINE}\n" in ran.err


def test_several_files_are_written_into_a_folder(
    cli: Cli, fake: FakeControl, tmp_path: Path
) -> None:
    fake.answer("POST", ROUTE, several())
    folder = tmp_path / "stack"

    ran = cli("installs", "stack", INS, "-o", str(folder))

    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        "local.py": "print('the script')\n",
        "readme.md": "# Read me\n",
    }
    assert folder.stat().st_mode & 0o777 == 0o700
    assert f"Wrote 2 files to {folder}." in ran.err


def test_files_in_folders_are_written_into_folders(
    cli: Cli, fake: FakeControl, tmp_path: Path
) -> None:
    deep = several()
    deep["files"][1]["name"] = "terraform/modules/main.tf.json"
    fake.answer("POST", ROUTE, deep)
    output = tmp_path / "stack"

    for _ in range(2):
        ran = cli("installs", "stack", INS, "-o", str(output))

    written = output / "terraform/modules/main.tf.json"
    assert (ran.code, written.read_text()) == (0, "# Read me\n")
    assert written.parent.stat().st_mode & 0o777 == 0o700


def test_a_link_in_the_folder_is_not_followed(cli: Cli, fake: FakeControl, tmp_path: Path) -> None:
    deep = several()
    deep["files"][1]["name"] = "terraform/main.tf.json"
    fake.answer("POST", ROUTE, deep)
    output, elsewhere = tmp_path / "stack", tmp_path / "elsewhere"
    output.mkdir()
    elsewhere.mkdir()
    (output / "terraform").symlink_to(elsewhere)

    ran = cli("installs", "stack", INS, "-o", str(output))

    assert ran.code != 0
    assert f"{output / 'terraform'} is not a folder" in ran.err
    assert list(elsewhere.iterdir()) == []


def test_a_file_in_the_way_of_a_folder_is_named(
    cli: Cli, fake: FakeControl, tmp_path: Path
) -> None:
    bad = several()
    bad["files"][1]["name"] = "local.py/readme.md"
    fake.answer("POST", ROUTE, bad)

    ran = cli("installs", "stack", INS, "-o", str(tmp_path / "stack"))

    assert ran.code != 0
    assert "local.py is not a folder" in ran.err


@pytest.mark.parametrize(
    "name",
    ["../readme.md", "a/../../readme.md", "/readme.md", "a//b", "./a", "a/.ssh/b", "a\\..\\b"],
)
def test_a_file_name_of_the_server_cannot_lead_out_of_the_folder(
    cli: Cli, fake: FakeControl, tmp_path: Path, name: str
) -> None:
    bad = several()
    bad["files"][1]["name"] = name
    fake.answer("POST", ROUTE, bad)

    ran = cli("installs", "stack", INS, "-o", str(tmp_path / "stack"))

    assert ran.code != 0
    assert list(tmp_path.iterdir()) == []


def test_json_shows_files_and_instructions(cli: Cli, fake: FakeControl) -> None:
    fake.answer("POST", ROUTE, several())

    ran = cli("installs", "stack", INS, "--json")

    shown = json.loads(ran.out)
    assert [file["name"] for file in shown["files"]] == ["local.py", "readme.md"]
    assert shown["instructions"]["commands"] == [LINE]
