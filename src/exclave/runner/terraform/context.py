"""The context of a Terraform job: what its commands need beside the context of every job."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from exclave.runner.jobs.context import Captured, JobContext
from exclave.runner.logs.spool import LogWriter
from exclave.runner.processes.child import Command
from exclave.runner.terraform.module import MODULE
from exclave.runner.terraform.plugin_cache import PluginCache
from exclave.runner.terraform.state_store import StateStore
from exclave.wire.specs import TerraformSpec


@dataclass(slots=True)
class TerraformContext:
    """A job's context with its specification, its state and the tool that runs it."""

    context: JobContext
    spec: TerraformSpec
    store: StateStore
    plugins: PluginCache
    """Locked during `init`: the shared folder of providers supports one `init` at a time."""
    tool: str = ""
    """Path of `terraform` or `tofu`."""
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def module(self) -> Path:
        """The module's folder."""
        return self.context.job.folder / MODULE

    @property
    def plan_file(self) -> Path:
        """The unencrypted plan; it leaves the machine only sealed."""
        return self.context.workspace.folder / "plan.bin"

    async def run(self, name: str, argv: tuple[str, ...], *, log: LogWriter | None = None) -> int:
        """Run a command in the module's folder, see `JobContext.run`."""
        return await self.context.run(self._build(argv), name=f"`{name}`", log=log)

    async def capture(
        self, name: str, argv: tuple[str, ...], *, cwd: Path | None = None, quiet: bool = True
    ) -> Captured:
        """Run a command and return its output, see `JobContext.capture`."""
        return await self.context.capture(self._build(argv, cwd), name=f"`{name}`", quiet=quiet)

    def _build(self, argv: tuple[str, ...], cwd: Path | None = None) -> Command:
        return Command(argv, self.env, cwd or self.module)
