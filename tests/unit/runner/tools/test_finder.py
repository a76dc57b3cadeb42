"""Tools: found, judged by version, fetched and verified, built; or missed with the fix."""

import asyncio
import hashlib
import io
import os
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from exclave.client.transport import Link
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.runner.tools.catalog import VENDORS
from exclave.runner.tools.download import ChecksumWrong, find_sum
from exclave.runner.tools.finder import Tool, ToolFinder, ToolSettings
from exclave.runner.tools.versions import Fit, Version, compare_versions

RAN: list[tuple[str, ...]] = []


async def run(command: Command, seconds: float) -> tuple[int, str]:
    """Play the tools: a program prints what is written in it."""
    del seconds
    RAN.append(command.argv)
    file = Path(command.argv[0])
    text = await asyncio.to_thread(file.read_text) if file.is_absolute() else ""
    return (1, "") if "broken" in text else (0, text)


def put(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


class Place:
    """A PATH, a tools folder and a mirror."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.tools = folder / "tools"
        self.mirror = folder / "mirror"

    def finder(self, **more: Any) -> ToolFinder:
        given = {"folder": self.tools, "path": str(self.bin), "download": False, **more}
        return ToolFinder(ToolSettings(**given))

    async def find(self, wish: str = "", **more: Any) -> Tool:
        return await self.finder(**more).find("terraform", wish, env={}, run=run)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("wanted", "found", "strict", "fit"),
    [
        ("1.11.4", "1.11.4", False, Fit.EXACT),
        ("1.11.3", "1.11.4", False, Fit.NEWER_PATCH),
        ("1.11.3", "1.11.4", True, Fit.WRONG),
        ("1.11.5", "1.11.4", False, Fit.WRONG),
        ("1.10.4", "1.11.4", False, Fit.WRONG),
        ("2.11.4", "1.11.4", False, Fit.WRONG),
        ("1.11.3", "1.11.4-beta1", False, Fit.WRONG),
    ],
)
def test_versions_are_judged(wanted: str, found: str, strict: bool, fit: Fit) -> None:
    there = Version.read(found)
    assert there is not None
    assert compare_versions(Version.read(wanted), there, strict=strict) is fit
    assert compare_versions(None, there, strict=strict) is Fit.EXACT


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Terraform v1.11.4\non linux_amd64", "1.11.4"),
        ('{\n  "terraform_version": "1.11.4"', "1.11.4"),
        ("OpenTofu v1.12.6", "1.12.6"),
        ("Version: 1.22.0\nBuild Commit:", "1.22.0"),
        ("nothing", "None"),
    ],
)
def test_versions_are_found_in_what_tools_print(text: str, version: str) -> None:
    assert str(Version.find(text)) == version


async def test_any_version_on_the_path_will_do_without_a_wish(place: Place) -> None:
    put(place.bin / "terraform", "Terraform v1.9.8")

    tool = await place.find()

    assert (tool.path, str(tool.version)) == (str(place.bin / "terraform"), "1.9.8")


async def test_a_newer_patch_is_taken_and_told(place: Place) -> None:
    put(place.bin / "terraform", "Terraform v1.11.4")

    tool = await place.find("1.11.3")

    assert "1.11.3 was asked for" in tool.note
    with pytest.raises(WorkFailed, match=r"no terraform 1.11.3; found: 1.11.4"):
        await place.find("1.11.3", strict=True)


async def test_the_exact_version_of_the_tools_folder_is_preferred(place: Place) -> None:
    put(place.bin / "terraform", "Terraform v1.11.9")
    put(place.tools / "terraform" / "1.11.3" / "terraform", "Terraform v1.11.3")
    put(place.tools / "terraform" / "1.10.0" / "terraform", "Terraform v1.10.0")
    put(place.tools / "terraform" / "rubbish" / "terraform", "x")

    assert "1.11.3" in (await place.find("1.11.3")).path
    assert "1.11.9" in str((await place.find("1.11.4")).version)


async def test_a_single_program_in_the_tools_folder_counts(place: Place) -> None:
    put(place.tools / "terraform", "Terraform v1.11.3")

    assert (await place.find("1.11.3")).path == str(place.tools / "terraform")


async def test_a_program_that_does_not_run_is_passed_over(place: Place) -> None:
    put(place.tools / "terraform", "broken")
    put(place.bin / "terraform", "Terraform v1.11.3")

    assert (await place.find("1.11.3")).path == str(place.bin / "terraform")


async def test_a_version_is_asked_for_once(place: Place) -> None:
    put(place.bin / "terraform", "Terraform v1.11.3")
    finder = place.finder()
    RAN.clear()

    for _ in range(3):
        await finder.find("terraform", "", env={}, run=run)

    assert len(RAN) == 1


async def find_helm(place: Place, wish: str = "") -> Tool:
    return await place.finder().find("helm", wish, env={}, run=run)


@pytest.mark.parametrize("version", ["4.1.0", "4.2.2", "4.3.1", "5.0.0"])
async def test_helm_4_is_used(place: Place, version: str) -> None:
    put(place.bin / "helm", f'version.BuildInfo{{Version:"v{version}", GoVersion:"go1.27.2"}}')

    assert str((await find_helm(place)).version) == version


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("3.17.3", "helm 4.1 or newer is needed, for example 4.3.1"),
        ("4.0.5", "helm 4.1 or newer is needed"),
        ("4.2.1", "does not wait for hooks and deletions"),
    ],
)
async def test_a_helm_that_does_not_work_is_refused_with_the_reason(
    place: Place, version: str, why: str
) -> None:
    put(place.bin / "helm", f'version.BuildInfo{{Version:"v{version}"}}')

    with pytest.raises(WorkFailed, match=why) as installed:
        await find_helm(place)
    with pytest.raises(WorkFailed, match=why) as asked_for:
        await find_helm(place, version)

    assert installed.value.reason == asked_for.value.reason == "tool_missing"


async def test_an_old_helm_on_the_path_does_not_hide_a_newer_one(place: Place) -> None:
    put(place.bin / "helm", "v3.17.3")
    put(place.tools / "helm" / "4.3.1" / "helm", "v4.3.1")

    assert "4.3.1" in (await find_helm(place)).path


async def test_kubectl_is_asked_for_its_own_version_only(place: Place) -> None:
    put(place.bin / "kubectl", "Client Version: v1.37.1\nKustomize Version: v5.8.1")
    RAN.clear()

    tool = await place.finder().find("kubectl", "", env={}, run=run)

    assert str(tool.version) == "1.37.1"
    assert [argv[1:] for argv in RAN] == [("version", "--client")]


@pytest.mark.parametrize("wish", ["1.11", "~> 1.11", "1.11.x", "newest", "1.11.4; rm"])
async def test_a_wish_that_is_no_version_is_refused(place: Place, wish: str) -> None:
    with pytest.raises(WorkFailed, match="is not a version of terraform"):
        await place.find(wish)


async def test_a_missing_tool_comes_with_the_fix(place: Place) -> None:
    with pytest.raises(WorkFailed) as failed:
        await place.find("1.11.4")

    assert failed.value.reason == "tool_missing"
    for word in ("Install terraform 1.11.4", "EXCLAVE_TOOLS", "EXCLAVE_TOOLS_DOWNLOAD"):
        assert word in failed.value.message


class Mirror(ThreadingHTTPServer):
    """Serves a folder, and counts."""

    daemon_threads = True


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
        """Say nothing."""


@pytest.fixture
def mirror(place: Place) -> Iterator[str]:
    place.mirror.mkdir()
    server = Mirror(("127.0.0.1", 0), partial(Quiet, directory=str(place.mirror)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def publish(place: Place, version: str = "1.11.4", *, text: str | None = None) -> str:
    """Put a release into the mirror; answer its checksum."""
    vendor = VENDORS["terraform"]
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("LICENSE.txt", "free")
        archive.writestr("terraform", text or f"Terraform v{version}")
    folder = place.mirror / "terraform" / version
    folder.mkdir(parents=True)
    name = vendor.fill(vendor.file, version)
    (folder / name).write_bytes(data.getvalue())
    digest = hashlib.sha256(data.getvalue()).hexdigest()
    sums = f"{'0' * 64}  other.zip\n{digest}  {name}\n"
    (folder / vendor.fill(vendor.sums, version)).write_text(sums)
    return digest


async def test_a_tool_is_fetched_verified_and_kept(place: Place, mirror: str) -> None:
    publish(place)

    first = await place.find("1.11.4", download=True, mirror=mirror)
    again = await place.find("1.11.4")

    assert first.path == again.path == str(place.tools / "terraform" / "1.11.4" / "terraform")
    assert os.access(first.path, os.X_OK)


async def test_many_at_once_fetch_it_once(place: Place, mirror: str) -> None:
    publish(place)

    found = await asyncio.gather(
        *(place.find("1.11.4", download=True, mirror=mirror) for _ in range(5))
    )

    assert len({tool.path for tool in found}) == 1
    assert [one.name for one in (place.tools / "terraform").iterdir() if one.name[0] != "."] == [
        "1.11.4"
    ]


async def test_a_wrong_checksum_leaves_nothing(place: Place, mirror: str) -> None:
    publish(place)
    wrong = {"terraform@1.11.4": "1" * 64}

    with pytest.raises(WorkFailed, match="has the checksum"):
        await place.find("1.11.4", download=True, mirror=mirror, checksums=wrong)

    assert [one.name for one in (place.tools / "terraform").iterdir()] == [".1.11.4.lock"]


async def test_a_pinned_checksum_needs_no_list(place: Place, mirror: str) -> None:
    digest = publish(place)
    for file in (place.mirror / "terraform" / "1.11.4").glob("*SHA256SUMS"):
        file.unlink()

    tool = await place.find(
        "1.11.4", download=True, mirror=mirror, checksums={"terraform@1.11.4": f"sha256:{digest}"}
    )

    assert str(tool.version) == "1.11.4"


async def test_a_mirror_that_is_away_is_told(place: Place) -> None:
    link = replace(Link(""), url="")
    with pytest.raises(WorkFailed, match="cannot be downloaded"):
        await place.find("1.11.4", download=True, mirror="http://127.0.0.1:1", link=link)


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        (f"{'a' * 64}  x.zip\n", "x.zip", "a" * 64),
        (f"{'b' * 64} *x.zip\n", "x.zip", "b" * 64),
        (f"{'c' * 64}\n", "x.zip", "c" * 64),
    ],
)
def test_lists_of_checksums_are_read(text: str, name: str, found: str) -> None:
    assert find_sum(text, name) == found


@pytest.mark.parametrize("text", ["", "rubbish", f"{'a' * 64}  y.zip", f"{'a' * 63}  x.zip"])
def test_a_list_without_the_file_is_refused(text: str) -> None:
    with pytest.raises(ChecksumWrong):
        find_sum(text, "x.zip")
