"""Another proxy or mirror in the document: used from the next start on, which comes soon."""

from dataclasses import replace
from pathlib import Path

from exclave.main.cloud_account import follow_network
from exclave.main.install_runner import build_tool_settings
from exclave.main.runner import build_config
from exclave.main.settings import RunnerSettings
from exclave.runner.executions.deps import Deps
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.loops.network_watch import watch_network
from exclave.wire.jobs import OutcomeState, Reason
from tests.unit.runner.cloud.cloud_kit import read_document
from tests.unit.runner.harness import RunnerHarness, expect, run_scenario

PROXY, MIRROR = "http://proxy.acme.example:3128", "https://mirror.acme.example/exclave"
DOCUMENT = read_document(proxy=PROXY, mirror=MIRROR)


def test_runner_tools_and_jobs_use_what_the_document_says(tmp_path: Path) -> None:
    settings = RunnerSettings(runner_data=tmp_path, run_as="none")

    followed, config = follow_network(DOCUMENT, settings, build_config(settings))
    tools = build_tool_settings(followed, config, ChildSettings())

    assert (config.link.proxy, tools.link.proxy, tools.mirror) == (PROXY, PROXY, MIRROR)


def test_what_the_machine_itself_sets_comes_first(tmp_path: Path) -> None:
    own = {"proxy": "http://own:1", "tools_mirror": "https://own"}
    settings = RunnerSettings(runner_data=tmp_path, run_as="none", **own)

    followed, config = follow_network(DOCUMENT, settings, build_config(settings))
    same = follow_network(None, settings, build_config(settings))

    assert (config.proxy, followed.tools_mirror) == ("http://own:1", "https://own")
    assert same == (settings, build_config(settings))


def test_a_change_restarts_the_runner_after_its_jobs_and_the_same_again_does_not(
    tmp_path: Path,
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        document = read_document(digest="e" * 64)

        async def watch(deps: Deps) -> None:
            await watch_network(deps, lambda: document, read_document())

        house.executor.lasts_s = 100.0
        house.duties = [watch]
        _, task = house.start()
        job = house.control.add_job()
        await house.clock.sleep(60)
        document = replace(document, mirror=MIRROR)
        await task

        expect(house.control.result_of(job), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        assert house.clock.monotonic() > 100

    house = run_scenario(tmp_path, scenario)

    assert "network_changed" in house.audit_events()
