"""The parts of an install runner that other runners lack: Terraform, actions, and their tools."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.errors import InvalidInput
from exclave.base.ids import Randomness
from exclave.main.settings import RunnerSettings
from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.registry_access import OpenRegistry
from exclave.runner.executors.action import ActionExecutor, ClusterTools
from exclave.runner.executors.deploy_kit import ClusterKit
from exclave.runner.executors.health import HealthExecutor
from exclave.runner.executors.helm import HelmExecutor
from exclave.runner.executors.image import ImageExecutor, ImageKit
from exclave.runner.executors.manifest import ManifestExecutor
from exclave.runner.executors.terraform import TerraformExecutor, TerraformKit
from exclave.runner.images.stack_registry import read_pull_login, read_registry
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import Executor
from exclave.runner.kube.access.clusters import ClusterConnector
from exclave.runner.kube.access.command_access import CommandAccess
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import SecretStore
from exclave.runner.terraform.module import TerraformSettings
from exclave.runner.tools.finder import ToolFinder, ToolSettings
from exclave.wire.jobs import JobKind


def make_install_executors(
    settings: RunnerSettings,
    config: RunnerConfig,
    children: ChildSettings,
    secrets: SecretStore,
    registry: OpenRegistry,
    clock: Clock,
    randomness: Randomness,
    connector: ClusterConnector,
) -> dict[JobKind, Executor]:
    """Return the executors of jobs of installs; they share the runner's seal key."""
    finder = ToolFinder(build_tool_settings(settings, config, children))
    clusters = ClusterTools(CommandAccess(connector, randomness), finder)
    sealer = Sealer(config.data, randomness)
    terraform = TerraformKit(
        children=children,
        secrets=secrets,
        sealer=sealer,
        finder=finder,
        open_registry=registry,
        clock=clock,
        randomness=randomness,
        settings=TerraformSettings(
            _resolve_cache(settings, config), settings.tf_mirror, settings.tf_tool
        ),
    )
    cluster = ClusterKit(
        children=children,
        secrets=secrets,
        sealer=sealer,
        finder=finder,
        open_registry=registry,
        clock=clock,
        randomness=randomness,
        connect=connector.connect,
        read_pull_login=partial(read_pull_login, config.data, secrets),
    )
    return {
        JobKind.TERRAFORM: TerraformExecutor(terraform),
        JobKind.HELM: HelmExecutor(cluster),
        JobKind.MANIFEST: ManifestExecutor(cluster),
        JobKind.HEALTH: HealthExecutor(cluster),
        JobKind.ACTION: ActionExecutor(children, secrets, sealer, registry, clock, clusters),
        JobKind.IMAGE: ImageExecutor(
            ImageKit(
                open_registry=registry,
                secrets=secrets,
                read_registry=partial(read_registry, config.data),
                link=replace(config.link, url=""),
                clock=clock,
            )
        ),
    }


def build_tool_settings(
    settings: RunnerSettings, config: RunnerConfig, children: ChildSettings
) -> ToolSettings:
    """Return the tool settings of the runner; raise on an invalid checksum."""
    return ToolSettings(
        folder=(settings.tools or (config.jobs_folder or config.data) / "tools").resolve(),
        path=children.path,
        download=settings.tools_download,
        build=settings.tools_build and not config.run_as,
        strict=settings.tools_strict,
        mirror=settings.tools_mirror,
        checksums=_read_checksums(settings.tools_checksums),
        go_proxy=settings.go_proxy,
        link=replace(config.link, url=""),
    )


def _resolve_cache(settings: RunnerSettings, config: RunnerConfig) -> Path | None:
    """Return the plugin cache; none for isolated jobs: one could change what another runs."""
    if settings.tf_plugin_cache is None or config.run_as:
        return None
    return settings.tf_plugin_cache.resolve()


def _read_checksums(text: str) -> dict[str, str]:
    checksums = {}
    for part in text.replace(",", " ").split():
        name, sign, value = part.partition("=")
        if not sign or "@" not in name:
            raise InvalidInput(
                f"EXCLAVE_TOOLS_CHECKSUMS: `{part}` is not a checksum",
                hint="Write them like `terraform@1.11.4=<sha256 in hex>`, split by commas.",
            )
        checksums[name] = value
    return checksums
