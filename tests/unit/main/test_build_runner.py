"""The settings of a build runner, in words and in values."""

import pytest

from exclave.base.errors import InvalidInput
from exclave.main.build_runner import build_git_settings
from exclave.main.environment import read_settings
from exclave.main.settings import RunnerSettings


def test_by_default_only_public_https_and_ssh_are_fetched_from() -> None:
    settings = build_git_settings(RunnerSettings())

    assert settings.protocols == {"https", "ssh"}
    assert not settings.allow_private
    assert settings.rewrites == ()


def test_protocols_addresses_and_mirrors_are_read() -> None:
    env = {
        "EXCLAVE_GIT_PROTOCOLS": "https,file",
        "EXCLAVE_GIT_ALLOW_PRIVATE": "true",
        "EXCLAVE_GIT_REWRITE": "https://a/=https://b/",
    }

    settings = build_git_settings(read_settings(RunnerSettings, env))

    assert settings.protocols == {"https", "file"}
    assert settings.allow_private
    assert [(one.prefix, one.target) for one in settings.rewrites] == [("https://a/", "https://b/")]


@pytest.mark.parametrize(("name", "value"), [("git_protocols", "ext"), ("git_rewrite", "x")])
def test_a_setting_that_means_nothing_is_refused_at_start(name: str, value: str) -> None:
    with pytest.raises(InvalidInput):
        build_git_settings(RunnerSettings.model_validate({name: value}))
