"""The module's surroundings: settings of the tool, backend, environment."""

import json
from pathlib import Path

import pytest

from exclave.runner.jobs.placeholders import Filler
from exclave.runner.terraform.module import (
    OVERRIDE,
    TerraformSettings,
    choose_env,
    choose_tool,
    write_cli_config,
    write_override,
)
from tests.support.terraform import make_spec


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (TerraformSettings(), "disable_checkpoint = true\n"),
        (
            TerraformSettings(mirror="/srv/providers"),
            (
                "disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n"
                '    path = "/srv/providers"\n  }\n}\n'
            ),
        ),
        (
            TerraformSettings(mirror="https://mirror.test/tf"),
            (
                "disable_checkpoint = true\nprovider_installation {\n  network_mirror {\n"
                '    url = "https://mirror.test/tf/"\n  }\n}\n'
            ),
        ),
    ],
)
def test_the_settings_of_the_tool(tmp_path: Path, settings: TerraformSettings, text: str) -> None:
    write_cli_config(tmp_path / "rc", settings)

    assert (tmp_path / "rc").read_text() == text


def test_the_cache_of_providers_is_made(tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache"

    write_cli_config(tmp_path / "rc", TerraformSettings(plugin_cache=cache))

    assert cache.is_dir()
    assert f'plugin_cache_dir = "{cache}"' in (tmp_path / "rc").read_text()


def test_the_override_replaces_a_file_of_the_module(tmp_path: Path) -> None:
    (tmp_path / OVERRIDE).write_text("{}")

    write_override(tmp_path)

    told = json.loads((tmp_path / OVERRIDE).read_text())
    assert told == {"terraform": {"backend": {"http": {}}}}


def test_switches_of_the_tool_are_dropped_by_name() -> None:
    env = {"TF_LOG": "x", "TF_VAR_a": "((exclave:secret:s))", "AWS_REGION": "eu", "TFX": "1"}

    kept, dropped = choose_env(make_spec("plan", env=env), Filler({"secret:s": "v"}))

    assert (kept, dropped) == ({"TF_VAR_a": "v", "AWS_REGION": "eu", "TFX": "1"}, ["TF_LOG"])


def test_a_runner_may_use_tofu_and_then_asks_for_no_version_of_terraform() -> None:
    spec = make_spec("plan", version="1.11.4")

    assert choose_tool(spec, TerraformSettings()) == ("terraform", "1.11.4")
    assert choose_tool(spec, TerraformSettings(tool="tofu")) == ("tofu", "")
