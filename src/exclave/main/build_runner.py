"""The parts of a build runner that other runners lack: git, and the right to push."""

from dataclasses import replace

from exclave.base.clock import Clock
from exclave.base.errors import InvalidInput
from exclave.main.install_runner import build_tool_settings
from exclave.main.settings import RunnerSettings
from exclave.runner.builds.charts.downloads import ChartDownloads
from exclave.runner.builds.recipe import BuildTools
from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.identity import load_key
from exclave.runner.control_plane.registry_access import OpenRegistry
from exclave.runner.executors.build import BuildExecutor
from exclave.runner.git.fetch import GitFetcher, GitSettings
from exclave.runner.git.urls import PROTOCOLS, parse_rewrites
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.secrets.source_credentials import FILE, SourceCredentials
from exclave.runner.secrets.store import SecretStore
from exclave.runner.tools.finder import ToolFinder


def make_build_executor(
    settings: RunnerSettings,
    config: RunnerConfig,
    children: ChildSettings,
    secrets: SecretStore,
    registry: OpenRegistry,
    clock: Clock,
) -> BuildExecutor:
    """Return the executor of `build` jobs; only runners of a build queue get any."""
    git, credentials = build_git_settings(settings), SourceCredentials(config.data / FILE)
    charts = ChartDownloads(replace(config.link, url=""), credentials, git.allow_private)
    finder = ToolFinder(build_tool_settings(settings, config, children))
    tools = BuildTools(
        GitFetcher(git, children, credentials),
        finder,
        charts,
        secrets=secrets,
        caches_layers=settings.build_cache,
    )
    return BuildExecutor(tools, registry, lambda: load_key(config.data), clock, children=children)


def build_git_settings(settings: RunnerSettings) -> GitSettings:
    """Return the git settings of the runner; raise on an invalid value."""
    protocols = settings.git_protocols.replace(",", " ").split()
    unknown = sorted(set(protocols) - set(PROTOCOLS))
    if unknown:
        raise InvalidInput(
            f"EXCLAVE_GIT_PROTOCOLS: `{unknown[0]}` is not a way to fetch",
            hint=f"Choose from {', '.join(PROTOCOLS)}.",
        )
    return GitSettings(
        rewrites=parse_rewrites(settings.git_rewrite),
        protocols=frozenset(protocols),
        allow_private=settings.git_allow_private,
    )
