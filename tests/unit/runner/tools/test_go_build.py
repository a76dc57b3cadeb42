"""Tools from Go modules: the sum is checked before anything is built."""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.runner.tools.catalog import Packing, Vendor
from exclave.runner.tools.finder import ToolFinder, ToolSettings
from exclave.runner.tools.go_build import build_tool
from tests.support.tools import give_up, need_go, run_command

SUM = "h1:cWGqM9DStn5Sc/S01ibBorrO6okOzKVbLc4FY/ax9+s="
SMALL = Vendor(
    name="2fa",
    default="1.2.0",
    folder="",
    file="",
    sums="",
    packing=Packing.PROGRAM,
    module="rsc.io/2fa",
    module_sums={"1.2.0": SUM},
)


class Go:
    """Plays the go command."""

    def __init__(self, folder: Path, *, told: dict[str, str] | None = None, code: int = 0) -> None:
        self.source = folder / "cache"
        self.source.mkdir()
        (self.source / "main.go").write_text("package main")
        self.told = {"Dir": str(self.source), "Sum": SUM} if told is None else told
        self.code = code
        self.argv: list[tuple[str, ...]] = []

    async def run(self, command: Command, seconds: float) -> tuple[int, str]:
        del seconds
        self.argv.append(command.argv)
        assert command.env["GOTOOLCHAIN"] == "local"
        if command.argv[1] == "mod":
            return (1 if "Error" in self.told else 0), json.dumps(self.told)
        if self.code == 0:
            target = command.argv[command.argv.index("-o") + 1]
            await asyncio.to_thread(Path(target).write_text, "built")
        return self.code, "main.go:1: no"


async def test_a_module_is_downloaded_checked_and_built(tmp_path: Path) -> None:
    go = Go(tmp_path)
    (tmp_path / "new").mkdir()

    made = await build_tool(SMALL, "1.2.0", tmp_path / "new", env={}, run=go.run)

    assert made.read_text() == "built"
    assert go.argv[0][-1] == "rsc.io/2fa@v1.2.0"
    assert "-mod=readonly" in go.argv[1]
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["2fa"]


async def test_a_program_is_built_with_its_version_where_the_module_does_not_know_it(
    tmp_path: Path,
) -> None:
    go = Go(tmp_path)
    (tmp_path / "new").mkdir()
    vendor = replace(SMALL, version_variable="rsc.io/2fa/version.text")

    await build_tool(vendor, "1.2.0", tmp_path / "new", env={}, run=go.run)

    assert "-ldflags=-X rsc.io/2fa/version.text=v1.2.0" in go.argv[1]


@pytest.mark.parametrize(
    ("told", "code", "words"),
    [
        ({"Dir": "/x", "Sum": "h1:other"}, 0, "its sum is h1:other"),
        ({"Error": "no such module"}, 0, "no such module"),
        (None, 2, "main.go:1: no"),
    ],
)
async def test_what_is_not_right_is_not_built(
    tmp_path: Path, told: dict[str, str] | None, code: int, words: str
) -> None:
    go = Go(tmp_path, told=told, code=code)
    (tmp_path / "new").mkdir()

    with pytest.raises(WorkFailed, match=words):
        await build_tool(SMALL, "1.2.0", tmp_path / "new", env={}, run=go.run)

    assert not (tmp_path / "new" / "2fa").exists()


async def test_a_real_module_becomes_a_program(tmp_path: Path) -> None:
    path = os.pathsep.join([str(need_go().parent), os.environ["PATH"]])
    settings = ToolSettings(folder=tmp_path / "tools", path=path, download=False, build=True)
    finder = ToolFinder(settings, {"2fa": SMALL})
    env = {"PATH": path, "HOME": str(tmp_path)}

    try:
        path = (await finder.find("2fa", "", env=env, run=run_command)).path
    except WorkFailed as failed:
        path = ""
        give_up(f"the module proxy is out of reach: {failed.message[:200]}")

    assert os.access(path, os.X_OK)
