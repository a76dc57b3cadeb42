"""Sources that lie in the app directory itself."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.shared import Repo
from exclave.appconfig.read_app import CheckedApp, read_app
from exclave.appconfig.starter import write_starter
from exclave.appconfig.stored.folders import find_folder, list_folders
from exclave.appconfig.stored.packing import pack_app
from exclave.base.archives import ArchiveProblem
from exclave.base.errors import InvalidInput
from tests.unit.appconfig.directories import codes, find, make_app, read

MODULE = 'name = "net"\ntype = "terraform_module"\nterraform_version = "1.11.3"\n'
HERE = MODULE + '[public_repo]\nrepo = "."\ndirectory = "{}"\n'


def read_here(folder: Path, directory: str, **files: str) -> CheckedApp:
    main = {"modules/net/main.tf": "# v1\n"}
    return read(folder, {"components/net.toml": HERE.format(directory), **main, **files})


@pytest.mark.parametrize("directory", ["modules/net", "./modules/net/", "."])
def test_a_folder_of_the_app_is_a_source_without_a_branch(tmp_path: Path, directory: str) -> None:
    reading = read_here(tmp_path, directory)

    assert codes(reading) == set()
    assert list(reading.folders) == ["." if directory == "." else "modules/net"]


def test_the_hash_of_a_component_follows_the_files_of_its_folder(tmp_path: Path) -> None:
    before = read_here(tmp_path / "a", "modules/net")
    same = read_here(tmp_path / "b", "./modules/net/../net")
    after = read_here(tmp_path / "c", "modules/net", **{"modules/net/main.tf": "# v2\n"})
    more = read_here(tmp_path / "d", "modules/net", **{"modules/net/deep/more.tf": ""})

    assert same.folders == before.folders
    assert len({each.hashes["net"] for each in (before, after, more)}) == 3
    assert {each.hashes["database"] for each in (before, after, more)} == {
        before.hashes["database"]
    }


def test_the_folders_of_action_steps_are_found(tmp_path: Path) -> None:
    text = """
name = "check"
timeout = "1m"
[[triggers]]
type = "manual"
[[steps]]
name = "a"
command = "./a.sh"
[steps.public_repo]
repo = "."
directory = "scripts"
"""
    reading = read(tmp_path, {"actions/check.toml": text, "scripts/a.sh": "#!/bin/sh\n"})

    assert [list_folders(each) for each in reading.app.list(Action)] == [("scripts",), ()]
    assert list(reading.folders) == ["scripts"]


@pytest.mark.parametrize(
    ("directory", "code", "hint"),
    [
        ("modules/nett", "reference_missing", "Did you mean `modules/net`?"),
        ("modules/net/main.tf", "reference_missing", "The path starts from the app directory."),
        ("../other", "reference_outside", "copy the folder into it"),
        ("/etc", "reference_outside", "copy the folder into it"),
        ("~", "reference_outside", "copy the folder into it"),
        ("modules/net/../../../other", "reference_outside", "copy the folder into it"),
    ],
)
def test_a_folder_that_is_none_of_the_app_is_refused(
    tmp_path: Path, directory: str, code: str, hint: str
) -> None:
    (tmp_path / "other").mkdir()

    reading = read_here(tmp_path, directory)

    assert [hint in each.hint for each in find(reading, code)] == [True]
    assert reading.folders == {}


def test_a_link_out_of_the_app_is_no_folder_of_it(tmp_path: Path) -> None:
    app = make_app(tmp_path, {"components/net.toml": HERE.format("linked")})
    (tmp_path / "other").mkdir()
    (app / "linked").symlink_to("../other")

    assert codes(read_app(app)) == {"file_outside"}


def test_a_link_to_another_folder_of_the_app_is_one(tmp_path: Path) -> None:
    app = make_app(
        tmp_path, {"components/net.toml": HERE.format("linked"), "modules/net/main.tf": ""}
    )
    (app / "linked").symlink_to("modules/net")

    assert codes(read_app(app)) == set()


def test_the_app_directory_is_no_connected_repository(tmp_path: Path) -> None:
    text = MODULE + '[connected_repo]\nrepo = "."\ndirectory = "."\n'

    found = find(read(tmp_path, {"components/net.toml": text}), "conflict")

    assert [each.hint for each in found] == [
        "The app directory needs no credentials: write [public_repo]."
    ]


def test_a_branch_of_versions_cannot_follow_the_app_directory(tmp_path: Path) -> None:
    text = 'name = "main"\n[public_repo]\nrepo = "."\ndirectory = "."\n'

    found = find(read(tmp_path, {"branch.toml": text}), "conflict")

    assert [each.message for each in found] == [
        "branch `main` follows a repository, and the app directory is not one"
    ]


def test_other_repositories_still_need_a_branch(tmp_path: Path) -> None:
    text = MODULE + '[public_repo]\nrepo = "acme/x"\ndirectory = "."\n'

    assert codes(read(tmp_path, {"components/net.toml": text})) == {"missing_key"}
    assert find_folder(Repo(repo="acme/x", directory="a")) == ""
    assert find_folder(None) == ""


def test_texts_that_no_database_can_hold_are_refused(tmp_path: Path) -> None:
    readme = 'version = "v2"\nreadme = "./README.md"\n'
    zero = 'name = "web"\ntype = "job"\nimage_url = "a\\u0000b"\n'

    files = {"metadata.toml": readme, "README.md": "a\0b", "components/web.toml": zero}
    reading = read(tmp_path, files)

    assert {"file_unreadable", "toml_syntax"} <= codes(reading)
    assert [each.line for each in find(reading, "toml_syntax")] == [3]


def test_a_backslash_is_no_character_zero(tmp_path: Path) -> None:
    text = "version = 'v2'\ndescription = 'a\\u0000b'\n"

    assert codes(read(tmp_path, {"metadata.toml": text})) == set()


def pack(app: Path) -> dict[str, bytes]:
    out = io.BytesIO()
    pack_app(app, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        return {
            each.name: (tar.extractfile(each) or io.BytesIO()).read() if each.isfile() else b"link"
            for each in tar
        }


def test_an_app_packs_the_same_wherever_it_lies(tmp_path: Path) -> None:
    app = make_app(tmp_path / "a", {"modules/net/main.tf": "# v1\n"})
    other = make_app(tmp_path / "b", {"modules/net/main.tf": "# v1\n"})
    os.utime(other / "metadata.toml", (1, 1))
    (other / "metadata.toml").chmod(0o600)
    (other / ".git").mkdir()
    (other / ".git/HEAD").write_text("x")
    (other / ".terraform").mkdir()

    assert pack(app) == pack(other)
    assert ".git/HEAD" not in pack(other)


def test_links_to_files_of_the_repository_are_packed_as_files(tmp_path: Path) -> None:
    app = make_app(tmp_path, {"metadata.toml": 'version = "v2"\nreadme = "./linked.md"\n'})
    (tmp_path / "shared/deep").mkdir(parents=True)
    (tmp_path / "shared/readme.md").write_text("# Shared\n")
    (tmp_path / "shared/deep/a.txt").write_text("a")
    (app / "linked.md").symlink_to("../shared/readme.md")
    (app / "absolute.toml").symlink_to(app / "runner.toml")
    (app / "near").symlink_to("metadata.toml")
    (app / "folder").symlink_to(tmp_path / "shared")

    packed = pack(app)

    assert packed["linked.md"] == packed["folder/readme.md"] == b"# Shared\n"
    assert packed["folder/deep/a.txt"] == b"a"
    assert packed["absolute.toml"] == (app / "runner.toml").read_bytes()
    assert packed["near"] == b"link"


def test_links_to_strange_places_are_not_packed(tmp_path: Path) -> None:
    app = make_app(tmp_path / "deep", {})
    (app / "passwords").symlink_to("/etc/passwd")

    with pytest.raises(ArchiveProblem, match="passwords"):
        pack(app)


def test_a_link_that_leads_in_a_circle_is_refused(tmp_path: Path) -> None:
    app = make_app(tmp_path, {})
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/back").symlink_to(tmp_path / "shared")
    (app / "folder").symlink_to(tmp_path / "shared")

    with pytest.raises(ArchiveProblem, match="leads back"):
        pack(app)


def test_what_is_no_directory_is_not_packed(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        pack_app(tmp_path / "none", io.BytesIO())


def test_the_starter_app_is_whole_and_needs_no_network(tmp_path: Path) -> None:
    write_starter(tmp_path / "hello-world")

    reading = read_app(tmp_path / "hello-world", strict=True)

    assert reading.diagnostics == ()
    assert reading.graph.order() == ("greeting", "page")
    assert sorted(reading.folders) == ["modules/greeting", "modules/page", "modules/sandbox"]
    assert [each.name for each in reading.app.actions] == ["greet"]


@pytest.mark.parametrize("module", ["sandbox", "greeting", "page"])
def test_the_modules_of_the_starter_app_are_valid(tmp_path: Path, module: str) -> None:
    write_starter(tmp_path / "hello")
    (tmp_path / "empty.tfrc").touch()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TF_CLI_CONFIG_FILE": str(tmp_path / "empty.tfrc"),
        "CHECKPOINT_DISABLE": "1",
    }
    base = ["terraform", f"-chdir={tmp_path / 'hello/modules' / module}"]

    for line in (["init", "-backend=false"], ["validate"], ["fmt", "-check"]):
        done = subprocess.run([*base, *line], env=env, capture_output=True, text=True, check=False)

        assert (line, done.returncode) == (line, 0), done.stdout + done.stderr
