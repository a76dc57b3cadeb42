"""Actions that work on a cluster: real commands, a real API server, no credential in their hands."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from exclave.base.ids import SystemRandomness
from exclave.runner.executors.action import ActionExecutor, ClusterTools
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import JobRun
from exclave.runner.kube.access.clusters import ClusterConnector, NamedKubeconfig
from exclave.runner.kube.access.command_access import CommandAccess
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import FileSecrets
from exclave.runner.tools.finder import ToolFinder, ToolSettings
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.logs import Stream
from exclave.wire.runner import Outcome
from exclave.wire.specs import ActionSpec
from tests.support.kubernetes import Cluster
from tests.unit.runner.work_kit import CLOCK, NO_UPLINK, ExecutionHarness, make_dispatch


def no_registry(*_: object) -> Any:
    raise AssertionError("no action of these tests has a source")


class Actions:
    def __init__(self, tmp_path: Path, kubeconfigs: dict[str, NamedKubeconfig]) -> None:
        self.harness = ExecutionHarness(tmp_path)
        randomness = SystemRandomness()
        connector = ClusterConnector(CLOCK, lambda _: None, lambda: kubeconfigs)
        finder = ToolFinder(ToolSettings(tmp_path / "tools", "", download=False))
        self.executor = ActionExecutor(
            ChildSettings(),
            FileSecrets(self.harness.secrets_file),
            Sealer(tmp_path, randomness),
            no_registry,
            CLOCK,
            ClusterTools(CommandAccess(connector, randomness), finder),
            keep_free_bytes=0,
        )

    async def run(self, script: str, **more: Any) -> Outcome:
        spec = ActionSpec.model_validate({"steps": [{"name": "s", "script": script}], **more})
        job = JobRun(make_dispatch(spec), self.harness.folder, NO_UPLINK)
        return await self.executor.run(job, self.harness.log, self.harness.stop)

    @property
    def journal(self) -> list[dict[str, str]]:
        lines = (self.harness.folder / "journal.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


DEFAULT = {"cluster": {"type": "kubeconfig"}, "kube_config": "optional"}


async def test_kubectl_works_and_what_it_changed_is_in_the_journal(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    actions = Actions(tmp_path, {"default": NamedKubeconfig(cluster.kubeconfig)})
    script = f"""
        test "$NUON_KUBECONFIG_ENABLED" = true
        kubectl -n {namespace} create configmap made --from-literal=a=1
        kubectl -n {namespace} get configmap made -o 'jsonpath={{.data.a}}'
        env; cat "$KUBECONFIG"
    """

    outcome = await actions.run(script, **DEFAULT)

    printed = "\n".join(actions.harness.texts())
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert cluster.exists(f"{path}/made")
    assert cluster.token not in printed
    assert "server" in printed
    assert [line["type"] for line in actions.journal] == [
        "begin", "cluster_request", "cluster_reply", "end",
    ]  # fmt: skip
    assert actions.journal[2] == {
        "type": "cluster_reply", "method": "POST", "path": path, "status": "201",
    }  # fmt: skip


async def test_nothing_of_the_access_is_left_when_the_action_has_ended(
    cluster: Cluster, tmp_path: Path
) -> None:
    actions = Actions(tmp_path, {"default": NamedKubeconfig(cluster.kubeconfig)})
    script = 'sed "s/.*127.0.0.1:\\([0-9]*\\).*/port=\\1/" "$KUBECONFIG" > "$EXCLAVE_OUTPUTS"'

    outcome = await actions.run(script, **DEFAULT)

    port = int(str(outcome.outputs["port"]))
    with pytest.raises(ConnectionRefusedError):
        await _connect(port)


async def _connect(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"kube_config": "optional"}, "no cluster is known"),
        (DEFAULT, "the Stack has no kubeconfig `default`"),
    ],
)
async def test_without_a_cluster_an_action_runs_and_says_so(
    tmp_path: Path, more: dict[str, Any], line: str
) -> None:
    actions = Actions(tmp_path, {})

    outcome = await actions.run(
        'test -z "${KUBECONFIG:-}"; echo "$NUON_KUBECONFIG_ENABLED"', **more
    )

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert actions.harness.texts() == ["false"]
    assert any(line in text for text in actions.harness.texts(Stream.SYSTEM))


async def test_a_context_that_is_asked_for_has_to_be_there(tmp_path: Path) -> None:
    actions = Actions(tmp_path, {})
    cluster = {"type": "kubeconfig", "name": "east"}

    outcome = await actions.run("echo ran", kube_config="required", cluster=cluster)

    assert (outcome.state, outcome.reason) == (OutcomeState.FAILED, Reason.ACCESS_DENIED)
    assert "the Stack has no kubeconfig `east`" in outcome.message
    assert actions.harness.texts() == []


async def test_an_action_that_wants_no_cluster_gets_none(cluster: Cluster, tmp_path: Path) -> None:
    actions = Actions(tmp_path, {"default": NamedKubeconfig(cluster.kubeconfig)})

    outcome = await actions.run('test -z "${KUBECONFIG:-}"')

    assert outcome.state is OutcomeState.SUCCEEDED
