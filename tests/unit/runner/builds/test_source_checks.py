"""Sources that cannot become artifacts: file, line and way out."""

from pathlib import Path

import pytest

from exclave.runner.builds.source_checks import (
    check_files,
    check_module,
    locate_folder,
)
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


def write(root: Path, files: dict[str, bytes | str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


@pytest.mark.parametrize("directory", [".", "", "a/b", "./a/b/", "a//b", "a/../a/b"])
def test_folders_are_found_however_they_are_written(tmp_path: Path, directory: str) -> None:
    write(tmp_path, {"a/b/main.tf": ""})

    assert locate_folder(tmp_path, directory).is_dir()


@pytest.mark.parametrize(
    ("directory", "words"),
    [
        ("/etc", "relative to its root"),
        ("../x", "relative to its root"),
        ("a/../../x", "relative to its root"),
        ("a/c", "there is no folder `a/c` in the source; there are `b`"),
        ("a/b/main.tf", "is a file"),
        ("out", "leads outside"),
    ],
)
def test_a_folder_that_is_not_there_is_named(tmp_path: Path, directory: str, words: str) -> None:
    write(tmp_path / "root", {"a/b/main.tf": ""})
    write(tmp_path / "x", {"main.tf": ""})
    (tmp_path / "root/out").symlink_to("../x")

    with pytest.raises(WorkFailed, match=words) as caught:
        locate_folder(tmp_path / "root", directory)

    assert caught.value.reason is Reason.SOURCE_INVALID


def test_files_are_counted_without_what_tools_keep(tmp_path: Path) -> None:
    write(tmp_path, {"main.tf": "", "sub/x.txt": "", ".git/config": "", ".terraform/x": ""})

    assert check_module(tmp_path) == 2
    assert check_files(tmp_path) == 2


def test_a_source_is_checked_as_what_its_artifact_is_used_as(tmp_path: Path) -> None:
    write(tmp_path, {"run.sh": "echo"})

    assert check_files(tmp_path) == 1
    with pytest.raises(WorkFailed, match="no Terraform module"):
        check_module(tmp_path)


def test_modules_beside_each_other_inside_the_folder_are_fine(tmp_path: Path) -> None:
    module = 'module "x" {\n  source = "../b"\n}\n'

    assert check_module(write(tmp_path, {"main.tf": "", "a/main.tf": module, "b/main.tf": ""})) == 3


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"README.md": "x"}, r"no `\*.tf` file"),
        ({"sub/main.tf": ""}, r"no `\*.tf` file"),
        ({"main.tf": b"# one\n# two \xff\n"}, r"^main.tf:2: byte 0xff is not valid UTF-8"),
        ({"main.tf": "", "x/y.tfvars": b"a\n\nb\xc3"}, r"^x/y.tfvars:3: "),
        ({"main.tf": "a\n\0"}, r"^main.tf:2: there is a NUL"),
        ({"main.tf.json": '{\n"a": }'}, r"^main.tf.json:2: not JSON: Expecting value"),
        ({"main.tf": "", "big.bin": LFS}, r"^big.bin:1: .*Git LFS"),
        (
            {"main.tf": '\nmodule "v" {\n  source  = "../modules/vpc"\n}'},
            r'^main.tf:3: the module "../modules/vpc" lies outside',
        ),
    ],
)
def test_what_terraform_could_never_read_is_told_by_file_and_line(
    tmp_path: Path, files: dict[str, bytes | str], words: str
) -> None:
    with pytest.raises(WorkFailed, match=words):
        check_module(write(tmp_path, files))


def test_an_empty_folder_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(WorkFailed, match="empty"):
        check_files(tmp_path)
