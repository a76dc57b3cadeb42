"""Programs on a machine: what is unpacked, what the starter tries, and when it goes back."""

import io
import json
import subprocess
import sys
import tarfile
import time
from hashlib import sha256
from pathlib import Path

import pytest

from exclave.client.transport import Link
from exclave.runner.cloud import starter
from exclave.runner.cloud.program_folders import ProgramFolders, ProgramWrong
from exclave.runner.loops.program_fetch import ProgramFetch
from tests.support.scripted_api import Reply, ScriptedApi

HANGS = "import time\ntime.sleep(60)\n"
WORKS = """
import pathlib, sys
root = pathlib.Path(__file__).parents[2]
(root / "trial").unlink(missing_ok=True)
print("ran", pathlib.Path(__file__).parent.name, *sys.argv[1:])
"""


def pack(**files: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("_py", ".py"))
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


class Disk:
    """The folder of the program on a machine, with two programs in it."""

    def __init__(self, root: Path, after: str, *, within_s: float = 1.0) -> None:
        self.root = root
        self.folders = ProgramFolders(root)
        self.before, self.after = self.add(pack(launch_py=WORKS)), self.add(pack(launch_py=after))
        source = Path(starter.__file__).read_text()
        (root / "start.py").write_text(source.replace("WITHIN_S = 120.0", f"WITHIN_S = {within_s}"))
        (root / "current").symlink_to(Path("versions") / self.before[:16])

    def add(self, archive: bytes) -> str:
        (self.root / "versions").mkdir(parents=True, exist_ok=True)
        file, digest = self.root / "archive", sha256(archive).hexdigest()
        file.write_bytes(archive)
        if not self.folders.find(digest).exists():
            self.folders.unpack(file, digest)
        return digest

    def start(self) -> str:
        """Start the program as systemd does; return what it prints."""
        words = [sys.executable, "-I", str(self.root / "start.py"), "runner", "--boot", "x"]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def test_a_program_that_works_stays_and_two_are_kept(tmp_path: Path) -> None:
    disk = Disk(tmp_path, f"{WORKS}\nprint(1)\n")
    third = disk.add(pack(launch_py=f"{WORKS}\nprint(3)\n"))

    first = disk.start()
    disk.folders.set_next(disk.after)
    second = disk.start()
    disk.folders.set_next(third)
    starter.begin_trial(tmp_path)
    starter.count_start(tmp_path)

    assert first.split() == ["ran", disk.before[:16], "runner", "--boot", "x"]
    assert second.split()[1] == disk.after[:16]
    assert disk.folders.confirm()
    assert not disk.folders.confirm()
    assert disk.folders.is_current(third)
    assert {folder.name for folder in (tmp_path / "versions").iterdir()} == {
        disk.after[:16], third[:16],
    }  # fmt: skip


def test_a_program_that_hangs_is_ended_and_left(tmp_path: Path) -> None:
    disk = Disk(tmp_path, HANGS, within_s=1.0)
    disk.folders.set_next(disk.after)

    began = time.monotonic()
    hung = disk.start()
    lasted = time.monotonic() - began
    again = disk.start()

    assert (hung, again.split()[1]) == ("", disk.before[:16])
    assert lasted < 20
    assert disk.folders.has_failed(disk.after)
    assert disk.folders.find_failure()[1] == "it did not reach the control plane"
    assert disk.folders.is_current(disk.before)


def test_a_crash_in_the_middle_of_the_switch_loses_neither_program(tmp_path: Path) -> None:
    disk = Disk(tmp_path, WORKS.replace("ran", "new"))
    disk.folders.set_next(disk.after)
    starter.begin_trial(tmp_path)  # and then the machine lost its power

    started = disk.start()

    assert started.split()[:2] == ["new", disk.after[:16]]
    assert disk.folders.find_failure() == ("", "")


@pytest.mark.parametrize(
    ("member", "words"), [("../evil", "strange member"), ("/evil", "strange member")]
)
def test_an_archive_that_writes_elsewhere_is_refused(
    tmp_path: Path, member: str, words: str
) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo(member))
    file = tmp_path / "archive"
    file.write_bytes(data.getvalue())

    with pytest.raises(ProgramWrong, match=words):
        ProgramFolders(tmp_path).unpack(file, sha256(data.getvalue()).hexdigest())


def test_what_is_not_the_program_that_was_named_is_refused(tmp_path: Path) -> None:
    folders = ProgramFolders(tmp_path)
    (tmp_path / "versions").mkdir()
    file = tmp_path / "archive"
    for data, digest in ((b"x", "0" * 64), (b"x", sha256(b"x").hexdigest())):
        file.write_bytes(data)

        with pytest.raises(ProgramWrong):
            folders.unpack(file, digest)

        assert not folders.find(digest).exists()


def test_a_note_of_a_failure_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    (tmp_path / "failed").write_text(json.dumps(["x"]))

    assert ProgramFolders(tmp_path).find_failure() == ("", "")
    assert not ProgramFolders(tmp_path).is_managed


@pytest.mark.parametrize(
    "launch", ["raise SystemExit(1)", "print('exclave 1.9.9')", "print()", "import none_such"]
)
async def test_a_program_that_does_not_start_here_is_never_tried(
    tmp_path: Path, launch: str
) -> None:
    disk = Disk(tmp_path, launch)
    fetch = ProgramFetch(disk.folders, "x86_64")

    with pytest.raises(ProgramWrong, match="does not start"):
        await fetch.prepare(Link("http://127.0.0.1:9"), "2.0.0", disk.after)


@pytest.mark.parametrize(
    ("mirror", "path"), [("", "/v1/stacks/package"), ("/programs", "/programs")]
)
async def test_a_program_comes_from_the_mirror_or_the_control_plane_and_is_verified(
    tmp_path: Path, mirror: str, path: str
) -> None:
    archive = pack(launch_py="print('exclave 2.0.0')")
    disk = Disk(tmp_path, HANGS)
    where = f"{path}/runner-2.0.0-x86_64.tar.gz"
    async with ScriptedApi({where: [Reply(200, archive)]}) as server:
        place = f"{server.url}{mirror}" if mirror else ""
        fetch = ProgramFetch(disk.folders, "x86_64", lambda: place)
        with pytest.raises(ProgramWrong, match="checksum"):
            await fetch.prepare(Link(server.url), "2.0.0", "0" * 64)
        await fetch.prepare(Link(server.url), "2.0.0", sha256(archive).hexdigest())

    assert disk.folders.find(sha256(archive).hexdigest()).is_dir()
    assert not list((tmp_path / "versions").glob("*.archive"))
