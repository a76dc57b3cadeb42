"""Tools: whether they are there, which version, and whether the runner would use them."""

from pathlib import Path

import pytest

from exclave.runner.doctor.findings import Finding
from exclave.runner.doctor.tools import check_tools


def put(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


async def find(name: str) -> Finding:
    return {finding.name: finding for finding in await check_tools()}[f"tool {name}"]


async def test_a_missing_tool_comes_with_what_it_is_for(path: Path) -> None:
    finding = await find("helm")

    assert (finding.state, finding.message) == ("warn", "not on the PATH")
    assert "charts" in finding.fix


async def test_a_tool_is_shown_with_its_version(path: Path) -> None:
    put(path, "helm", "echo v4.3.1")

    assert (await find("helm")) == Finding("tool helm", "ok", f"{path}/helm, version 4.3.1")


async def test_helm_3_is_not_used(path: Path) -> None:
    put(path, "helm", "echo v3.17.3")

    finding = await find("helm")

    assert finding.state == "warn"
    assert "helm 4.1 or newer is needed" in finding.message


async def test_kubectl_is_not_asked_for_a_cluster(path: Path) -> None:
    put(path, "kubectl", '[ "$2" = --client ] && echo Client Version: v1.37.1')

    assert (await find("kubectl")).state == "ok"


async def test_a_tool_that_does_not_start_is_told(path: Path) -> None:
    (path / "opa").write_bytes(b"\x7fELF of another machine")
    (path / "opa").chmod(0o755)

    finding = await find("opa")

    assert (finding.state, finding.fix) == ("warn", "Install it again.")


@pytest.mark.parametrize(
    ("build", "state", "words"),
    [
        ("exit 0", "ok", "version 1.39.3"),
        ("echo no subuid ranges for this user; exit 125", "warn", "no subuid ranges"),
    ],
)
async def test_buildah_is_tried_with_an_image_of_one_file(
    path: Path, build: str, state: str, words: str
) -> None:
    put(path, "buildah", f'[ "$1" = --version ] && echo buildah version 1.39.3 && exit\n{build}')

    finding = await find("buildah")

    assert finding.state == state
    assert words in finding.message


async def test_buildah_needs_user_namespaces_where_jobs_are_isolated(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(path, "buildah", "echo buildah version 1.39.3")
    monkeypatch.setattr("exclave.runner.doctor.tools.find_obstacle", lambda: "")
    monkeypatch.setattr("exclave.runner.processes.user_namespaces._HOLDER", "/not/there")

    finding = await find("buildah")

    assert finding.state == "warn"
    assert "builds of images need user namespaces" in finding.message
