"""Commands in pods of a component, for its probes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from exclave.base.ids import Randomness
from exclave.base.secrets import Secret
from exclave.runner.commands import kubectl
from exclave.runner.jobs.context import JobContext
from exclave.runner.kube.access.proxy import ClusterProxy
from exclave.runner.kube.access.proxy_rules import Mode
from exclave.runner.kube.api.connection import Connection
from exclave.runner.processes.child import Command
from exclave.runner.tools.finder import ToolFinder
from exclave.runner.tools.job_tools import find_job_tool

_ENDED: Final = "command terminated with exit code"
"""How kubectl begins its own last line, which says no more than the exit code."""


@dataclass(slots=True)
class PodCommands:
    """Runs commands in pods by `kubectl exec`, which gets no credential and starts no shell."""

    context: JobContext
    connection: Connection
    finder: ToolFinder
    randomness: Randomness

    async def run(self, namespace: str, pod: str, command: Sequence[str]) -> str:
        """Run a command; return why it failed, or an empty text."""
        context = self.context
        tool = (await find_job_tool(self.finder, context, "kubectl")).path
        # A connection into a pod can change what runs there, so the proxy needs the right to.
        async with ClusterProxy(self.connection, self.randomness, mode=Mode.WRITE) as proxy:
            context.log.hide(Secret(text) for text in proxy.secrets)
            file = proxy.write_kubeconfig(context.workspace, namespace)
            env = context.build_env({"KUBECONFIG": str(file)})
            argv = kubectl.exec_in(tool, namespace, pod, command)
            ended = await context.capture(
                Command(argv, _drop_proxy(env), context.workspace.work), name="`kubectl exec`"
            )
        if ended.code == 0:
            return ""
        lines = [*ended.stdout.splitlines(), *ended.stderr.splitlines()]
        last = [line for line in lines if line.strip() and not line.startswith(_ENDED)][-1:]
        return context.mask(f"exit code {ended.code}" + "".join(f": {line}" for line in last))


def _drop_proxy(env: dict[str, str]) -> dict[str, str]:
    """Return an environment without a web proxy: the cluster's proxy is on the loopback."""
    return {name: value for name, value in env.items() if not name.upper().endswith("_PROXY")}
