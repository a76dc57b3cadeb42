"""Real providers: from a mirror, kept between jobs, by several runners of one machine at once."""

import asyncio
import platform
import signal
import sys
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from exclave.runner.terraform.module import TerraformSettings
from tests.support.terraform import Ran, TerraformHarness
from tests.support.tools import need_terraform, need_tool
from tests.support.world import ManualClock, enrol_fake_runner, make_deps, make_install, make_org

VERSION = "0.14.1"
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
MODULE = """
terraform {
  required_providers {
    time = { source = "hashicorp/time" }
  }
}
resource "time_static" "now" {}
output "year" { value = time_static.now.year }
"""
Open = Callable[[str], Awaitable[TerraformHarness]]


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A folder as `terraform providers mirror` fills it."""
    need_terraform()
    program = need_tool("terraform-provider-time")
    folder = tmp_path / "mirror" / "registry.terraform.io" / "hashicorp" / "time"
    folder.mkdir(parents=True)
    file = folder / f"terraform-provider-time_{VERSION}_linux_{ARCH}.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.write(program, f"terraform-provider-time_v{VERSION}_x5")
    return tmp_path / "mirror"


@pytest.fixture
def settings(tmp_path: Path, mirror: Path) -> TerraformSettings:
    return TerraformSettings(plugin_cache=tmp_path / "cache", mirror=str(mirror))


@pytest.fixture
async def open_bench(tmp_path: Path, settings: TerraformSettings) -> AsyncIterator[Open]:
    """Open runners of different control planes, all with the same settings for providers."""
    async with AsyncExitStack() as stack:
        yield lambda name: stack.enter_async_context(make_bench(tmp_path / name, settings))


@asynccontextmanager
async def make_bench(folder: Path, settings: TerraformSettings) -> AsyncIterator[TerraformHarness]:
    await asyncio.to_thread(folder.mkdir)
    deps = make_deps(ManualClock(), seed=abs(hash(str(folder))))
    user = await make_org(deps)
    queue = await make_install(deps, user)
    peer = await enrol_fake_runner(deps, user, queue)
    bench = TerraformHarness(deps, user, queue, peer, folder, terraform=settings)
    bench.write(MODULE)
    try:
        yield bench
    finally:
        deps.db.close()


def list_packages(settings: TerraformSettings) -> dict[str, int]:
    assert settings.plugin_cache is not None
    found = settings.plugin_cache.rglob("terraform-provider-time*")
    return {file.name: file.stat().st_ino for file in found}


async def test_a_provider_comes_from_the_mirror_and_stays_in_the_cache(
    open_bench: Open, settings: TerraformSettings
) -> None:
    bench = await open_bench("one")

    applied = await bench.plan_and_apply()
    first = list_packages(settings)
    again = await bench.plan()

    assert applied.outcome.state == "succeeded", applied.text
    assert applied.outputs["outputs"]["year"] >= 2024
    assert len(first) == 1
    assert again.outputs["noop"] is True
    assert "from the shared cache directory" in again.text
    assert list_packages(settings) == first
    down = await bench.plan_and_apply(destroy=True)
    assert down.outcome.state == "succeeded", down.text


async def test_without_a_cache_each_job_gets_its_own(
    tmp_path: Path, settings: TerraformSettings
) -> None:
    async with make_bench(tmp_path / "one", replace(settings, plugin_cache=None)) as bench:
        applied = await bench.plan_and_apply()

    assert applied.outcome.state == "succeeded", applied.text
    assert "Installing hashicorp/time" in applied.text


async def test_a_provider_that_the_mirror_lacks_is_told_as_such(open_bench: Open) -> None:
    bench = await open_bench("one")
    bench.write(MODULE.replace("hashicorp/time", "hashicorp/random"))

    ran = await bench.plan()

    assert (ran.outcome.state, ran.outcome.reason) == ("failed", "provider_unavailable"), ran.text


async def test_runners_that_share_a_cache_do_not_harm_each_other(
    open_bench: Open, settings: TerraformSettings
) -> None:
    benches = [await open_bench(f"runner-{number}") for number in range(3)]

    ran: list[Ran] = await asyncio.gather(*(bench.plan_and_apply() for bench in benches))

    assert [one.outcome.state for one in ran] == ["succeeded"] * 3, [one.text for one in ran]
    assert len(list_packages(settings)) == 1


CRASH = """
import asyncio, os, sys
from pathlib import Path
from exclave.base.clock import SystemClock
from exclave.runner.terraform.plugin_cache import PluginCache

async def run():
    Path(sys.argv[1]).mkdir()
    async with PluginCache(Path(sys.argv[1]), SystemClock()).turn(lambda: None):
        half = Path(sys.argv[2])
        half.parent.mkdir(parents=True)
        half.write_bytes(b"\\x7fELF")
        half.chmod(0o755)
        os.kill(os.getpid(), 9)

asyncio.run(run())
"""


async def test_half_a_provider_is_not_taken_for_a_whole_one(
    open_bench: Open, settings: TerraformSettings
) -> None:
    """What kill -9 in mid-`init` leaves is an executable that Terraform would start in vain."""
    assert settings.plugin_cache is not None
    half = settings.plugin_cache.joinpath(
        "registry.terraform.io",
        "hashicorp",
        "time",
        VERSION,
        f"linux_{ARCH}",
        f"terraform-provider-time_v{VERSION}_x5",
    )
    argv = [sys.executable, "-c", CRASH, str(settings.plugin_cache), str(half)]
    crashed = await asyncio.create_subprocess_exec(*argv)
    assert await crashed.wait() == -signal.SIGKILL
    assert half.exists()

    bench = await open_bench("one")
    applied = await bench.plan_and_apply()

    assert applied.outcome.state == "succeeded", applied.text
