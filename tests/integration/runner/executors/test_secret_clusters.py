"""Secrets of the customer in a real cluster."""

import base64
import json
from pathlib import Path
from typing import Any, cast

import pytest

from exclave.base.ids import SystemRandomness
from exclave.base.json_values import JsonObject, object_or_empty
from exclave.client.problems import Unreachable
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.executors.secrets import SecretClusters, SecretsExecutor
from exclave.runner.jobs.executor import JobRun, StopRequest
from exclave.runner.kube.access.clusters import ClusterConnector, NamedKubeconfig
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.secrets.readers import reads
from exclave.runner.logs.job_log import open_log
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import FileSecrets
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from exclave.wire.specs import SecretsSpec
from exclave.wire.states import LockInfo, SealedState
from tests.support.kubernetes import Cluster
from tests.unit.runner.work_kit import CLOCK, make_dispatch, read_spool

VALUE = "correct-horse-battery"


class MemoryUplink:
    """Keeps the state of a workspace and checks that it is written under its lock."""

    org_id, queue_id = "org_1", "ins_1"

    def __init__(self) -> None:
        self.state: SealedState | None = None
        self.lock: str | None = None
        self.writes_left: int | None = None

    async def read_state(self, workspace: str, patience: object = None) -> SealedState | None:
        assert workspace == "secrets"
        return self.state

    async def write_state(
        self, workspace: str, lock_id: str, state: SealedState, patience: object = None
    ) -> None:
        assert self.lock == lock_id
        if self.writes_left is not None:
            self.writes_left -= 1
            if self.writes_left < 0:
                raise Unreachable("the control plane does not answer")
        assert self.state is None or state.header.serial > self.state.header.serial
        self.state = state

    async def lock_state(self, workspace: str, lock: LockInfo, patience: object = None) -> None:
        assert self.lock is None
        self.lock = lock.id

    async def unlock_state(self, workspace: str, lock_id: str, patience: object = None) -> None:
        self.lock = None


class Secrets:
    def __init__(self, cluster: Cluster, namespace: str, tmp_path: Path) -> None:
        self.cluster, self.namespace, self.folder = cluster, namespace, tmp_path
        self.uplink = MemoryUplink()
        self.runs = 0
        self.printed = ""

    async def sync(
        self, values: dict[str, str], *targets: tuple[str, str, str], **more: Any
    ) -> Outcome:
        """Run the job: each target is a secret, the name of a Secret and its key."""
        named = [
            {"secret": secret, "namespace": self.namespace, "name": name, "key": key, **more}
            for secret, name, key in targets
        ]
        return await self.run(values, named, names=("db", "api"))

    async def remove(self) -> Outcome:
        """Run the job of a deprovision, which wants nothing."""
        return await self.run({}, [], names=())

    async def run(
        self,
        values: dict[str, str],
        targets: list[dict[str, Any]],
        names: tuple[str, ...],
        *,
        adopt: bool = False,
    ) -> Outcome:
        self.runs += 1
        file, folder = self.folder / "secrets.json", self.folder / f"run-{self.runs}"
        file.write_text(json.dumps(values))
        file.chmod(0o600)
        folder.mkdir()
        randomness = SystemRandomness()
        kubeconfigs = {"default": NamedKubeconfig(self.cluster.kubeconfig)}
        connector = ClusterConnector(CLOCK, lambda _: None, lambda: kubeconfigs)
        clusters = SecretClusters(connector, Sealer(self.folder, randomness), CLOCK)
        executor = SecretsExecutor(FileSecrets(file), randomness, str, clusters)
        spec = SecretsSpec.model_validate(
            {
                "secrets": [{"name": name} for name in names],
                "targets": targets,
                "cluster": {"type": "kubeconfig"},
                "adopt": adopt,
            }
        )
        log, spool = open_log(folder / "log", CLOCK)
        job = JobRun(make_dispatch(spec), folder, cast("Uplink", self.uplink))
        outcome = await executor.run(job, log, StopRequest())
        self.printed = "\n".join(record.text for record in read_spool(spool))
        return outcome

    def path(self, name: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets/{name}"

    def read(self, name: str) -> dict[str, str]:
        data = object_or_empty(self.cluster.request("GET", self.path(name)).get("data"))
        return {key: base64.b64decode(str(value)).decode() for key, value in data.items()}

    def patch(self, path: str, body: JsonObject) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        answer = self.cluster.api.patch(path, content=json.dumps(body), headers=headers)
        assert answer.is_success, answer.text


@pytest.fixture
def secrets(cluster: Cluster, namespace: str, tmp_path: Path) -> Secrets:
    return Secrets(cluster, namespace, tmp_path)


async def test_values_reach_their_keys_and_nothing_else(secrets: Secrets) -> None:
    values = {"db": VALUE, "api": "second-value"}
    outcome = await secrets.sync(values, ("db", "app", "password"), ("api", "app", "token"))

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert secrets.read("app") == {"password": VALUE, "token": "second-value"}
    places = object_or_empty(outcome.outputs["secrets"])["db"]
    assert places == {
        "exists": True,
        "length": 32,
        "kubernetes_secrets": [{"namespace": secrets.namespace, "name": "app", "key": "password"}],
    }
    state = secrets.uplink.state
    assert state is not None
    assert [one.address for one in state.header.resources] == [f"Secret/{secrets.namespace}/app"]
    encoded = base64.b64encode(VALUE.encode()).decode()
    for text in (secrets.printed, outcome.model_dump_json(), state.header.model_dump_json()):
        assert VALUE not in text
        assert encoded not in text


async def test_one_missing_value_writes_nothing(secrets: Secrets) -> None:
    outcome = await secrets.sync({"db": VALUE}, ("db", "app", "a"), ("api", "app", "b"))

    assert (outcome.state, outcome.reason) == (OutcomeState.FAILED, Reason.SECRET_MISSING)
    assert "api" in outcome.message
    assert not secrets.cluster.exists(secrets.path("app"))


async def test_rotation_and_removal_touch_our_keys_only(secrets: Secrets) -> None:
    await secrets.sync({"db": VALUE, "api": "x-value"}, ("db", "app", "a"), ("api", "app", "b"))
    secrets.patch(secrets.path("app"), {"data": {"own": "eA=="}})
    await secrets.sync({"db": "rotated-value"}, ("db", "app", "a"))
    rotated = secrets.read("app")
    await secrets.sync({"db": "rotated-value"}, ("db", "app", "a"))
    again = secrets.printed
    await secrets.sync({"db": "rotated-value"}, ("db", "other", "a"))

    assert rotated == {"a": "rotated-value", "own": "x"}
    assert "unchanged" in again
    assert secrets.read("app") == {"own": "x"}
    assert secrets.read("other") == {"a": "rotated-value"}


async def test_a_secret_that_is_wanted_no_more_is_deleted(secrets: Secrets) -> None:
    await secrets.sync({"db": VALUE}, ("db", "app", "a"))
    outcome = await secrets.sync({"db": VALUE})

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert not secrets.cluster.exists(secrets.path("app"))
    assert secrets.uplink.state is not None
    assert secrets.uplink.state.header.resources == []
    assert secrets.uplink.lock is None


async def test_an_empty_list_of_targets_removes_all_copies_and_says_so(secrets: Secrets) -> None:
    await secrets.sync({"db": VALUE}, ("db", "app", "a"), ("db", "shared", "a"))
    secrets.patch(secrets.path("shared"), {"data": {"own": "eA=="}})

    outcome = await secrets.remove()

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert not secrets.cluster.exists(secrets.path("app"))
    assert secrets.read("shared") == {"own": "x"}
    assert f"Secret {secrets.namespace}/app is removed" in outcome.message
    assert f"Secret {secrets.namespace}/shared stays" in outcome.message
    assert secrets.uplink.state is not None
    assert secrets.uplink.state.header.resources == []
    assert (await secrets.remove()).message == ""


async def test_a_secret_that_somebody_made_anew_is_not_touched(secrets: Secrets) -> None:
    await secrets.sync({"db": VALUE}, ("db", "app", "a"))
    secrets.cluster.request("DELETE", secrets.path("app"))
    theirs = {"metadata": {"name": "app"}, "type": "example.com/own", "data": {"a": "eA=="}}
    path = f"/api/v1/namespaces/{secrets.namespace}/secrets"
    made = secrets.cluster.request("POST", path, cast("JsonObject", theirs))

    outcome = await secrets.remove()

    assert "somebody made it anew" in outcome.message
    assert secrets.cluster.request("GET", secrets.path("app")) == made


async def test_namespaces_that_were_made_for_secrets_go_with_the_last_of_them(
    secrets: Secrets,
) -> None:
    own, shared = f"{secrets.namespace}-own", f"{secrets.namespace}-shared"
    targets = [
        {"secret": "db", "namespace": namespace, "name": "app", "key": "a"}
        for namespace in (secrets.namespace, own, shared)
    ]
    await secrets.run({"db": VALUE}, targets, names=("db",))
    config: JsonObject = {"metadata": {"name": "theirs"}}
    secrets.cluster.request("POST", f"/api/v1/namespaces/{shared}/configmaps", config)

    outcome = await secrets.remove()

    assert f"the namespace `{own}` is removed" in outcome.message
    assert f"`{shared}` stays, because of ConfigMap/{shared}/theirs in it" in outcome.message
    assert not secrets.cluster.exists(f"/api/v1/namespaces/{own}")
    assert not secrets.cluster.exists(f"/api/v1/namespaces/{shared}/secrets/app")
    assert secrets.cluster.exists(f"/api/v1/namespaces/{secrets.namespace}")
    secrets.cluster.request("DELETE", f"/api/v1/namespaces/{shared}")


async def test_copies_of_another_cluster_are_made_anew_where_that_is_confirmed(
    secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = {"secret": "db", "namespace": secrets.namespace, "name": "app", "key": "a"}
    with monkeypatch.context() as patched:
        patched.setattr(ClusterClient, "read_cluster_uid", _read_other)
        await secrets.run({"db": VALUE}, [target], names=("db",))
    secrets.cluster.request("DELETE", secrets.path("app"))

    refused = await secrets.run({"db": VALUE}, [target], names=("db",))
    adopted = await secrets.run({"db": VALUE}, [target], names=("db",), adopt=True)

    assert refused.reason is Reason.CLUSTER_UNREACHABLE
    assert adopted.state is OutcomeState.SUCCEEDED, adopted.message
    assert secrets.read("app") == {"a": VALUE}


async def _read_other(client: ClusterClient) -> str:
    del client
    return "another-cluster"


async def test_what_a_removal_could_not_store_is_found_again(secrets: Secrets) -> None:
    await secrets.sync({"db": VALUE}, ("db", "app", "a"))
    secrets.uplink.writes_left = 1
    cut_off = await secrets.remove()
    known = secrets.uplink.state
    secrets.uplink.writes_left = None
    again = await secrets.remove()

    assert cut_off.reason is Reason.NETWORK
    assert known is not None
    assert [one.address for one in known.header.resources] == [f"Secret/{secrets.namespace}/app"]
    assert again.state is OutcomeState.SUCCEEDED, again.message
    assert secrets.uplink.state is not None
    assert secrets.uplink.state.header.resources == []


async def test_a_key_of_somebody_else_is_refused_by_name(secrets: Secrets) -> None:
    theirs = {"metadata": {"name": "app"}, "data": {"a": "eA=="}}
    path = f"/api/v1/namespaces/{secrets.namespace}/secrets"
    secrets.cluster.request("POST", path, theirs)

    outcome = await secrets.sync({"db": VALUE}, ("db", "app", "a"))

    assert outcome.reason is Reason.OBJECT_REFUSED
    assert ".data.a" in outcome.message
    assert secrets.read("app") == {"a": "x"}
    assert secrets.uplink.lock is None


async def test_a_secret_that_the_customer_made_is_never_deleted(secrets: Secrets) -> None:
    path = f"/api/v1/namespaces/{secrets.namespace}/secrets"
    secrets.cluster.request("POST", path, {"metadata": {"name": "app"}})
    await secrets.sync({"db": VALUE}, ("db", "app", "a"))
    await secrets.sync({"db": VALUE})

    assert secrets.read("app") == {}


async def test_base64_is_decoded_and_what_is_none_is_an_error(secrets: Secrets) -> None:
    text = base64.b64encode(b"raw-bytes").decode()
    good = await secrets.sync({"db": text}, ("db", "app", "a"), base64=True)
    bad = await secrets.sync({"db": "not base64!"}, ("db", "app", "a"), base64=True)

    assert good.state is OutcomeState.SUCCEEDED, good.message
    assert secrets.read("app") == {"a": "raw-bytes"}
    assert bad.reason is Reason.SECRET_MISSING


async def test_two_secrets_cannot_share_a_key(secrets: Secrets) -> None:
    values = {"db": VALUE, "api": "second-value"}
    outcome = await secrets.sync(values, ("db", "app", "a"), ("api", "app", "a"))

    assert outcome.reason is Reason.OBJECT_REFUSED
    assert "`db` and `api`" in outcome.message


WORKLOADS = {"deployments": {}, "daemonsets": {}, "statefulsets": {"serviceName": "web"}}


def make_reader(secrets: Secrets, kind: str, secret: str = "app") -> str:
    """Make a workload that reads the Secret; return its path."""
    source = {"secretKeyRef": {"name": secret, "key": "a"}}
    container = {"name": "c", "image": "x", "env": [{"name": "A", "valueFrom": source}]}
    labels = {"app": f"{kind}-{secret}"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template, **WORKLOADS[kind]}
    path = f"/apis/apps/v1/namespaces/{secrets.namespace}/{kind}"
    body = {"metadata": {"name": f"web-{secret}"}, "spec": spec}
    secrets.cluster.request("POST", path, cast("JsonObject", body))
    return f"{path}/web-{secret}"


def read_template(secrets: Secrets, path: str) -> str:
    return json.dumps(object_or_empty(secrets.cluster.request("GET", path)["spec"])["template"])


@pytest.mark.parametrize("restart", [False, True])
async def test_readers_of_a_changed_secret_are_named_and_restarted_if_asked(
    secrets: Secrets, restart: bool
) -> None:
    await secrets.sync({"db": VALUE}, ("db", "app", "a"), restart=restart)
    readers = [make_reader(secrets, kind) for kind in WORKLOADS]
    other = make_reader(secrets, "deployments", "other")
    await secrets.sync({"db": VALUE}, ("db", "app", "a"), restart=restart)
    unchanged = secrets.printed
    await secrets.sync({"db": "rotated-value"}, ("db", "app", "a"), restart=restart)

    assert "reads it" not in unchanged
    for kind in ("Deployment", "DaemonSet", "StatefulSet"):
        assert f"apps/{kind}/{secrets.namespace}/web-app reads it" in secrets.printed
    for reader in readers:
        template = read_template(secrets, reader)
        assert ("exclave.dev/secret-version" in template) == restart
        assert "rotated" not in template
    assert "exclave.dev" not in read_template(secrets, other)
    assert not reads(secrets.cluster.request("GET", other), "app")


def leave_pending(secrets: Secrets, name: str) -> None:
    """Leave a Secret as a runner does that ends between the change and the restarts."""
    live = secrets.cluster.request("GET", secrets.path(name))
    metadata = object_or_empty(live.get("metadata"))
    annotations = {**object_or_empty(metadata.get("annotations")), "exclave.dev/restart": "pending"}
    value = {
        **{key: live[key] for key in ("apiVersion", "kind", "type", "data")},
        "metadata": {"name": name, "labels": metadata["labels"], "annotations": annotations},
    }
    answer = secrets.cluster.api.patch(
        secrets.path(name),
        params={"fieldManager": "exclave-secrets"},
        content=json.dumps(value),
        headers={"Content-Type": "application/apply-patch+yaml"},
    )
    assert answer.is_success, answer.text


async def test_a_restart_that_was_interrupted_is_caught_up_with(secrets: Secrets) -> None:
    await secrets.sync({"db": VALUE}, ("db", "app", "a"), restart=True)
    reader = make_reader(secrets, "deployments")
    leave_pending(secrets, "app")
    await secrets.sync({"db": VALUE}, ("db", "app", "a"), restart=True)
    restarted = read_template(secrets, reader)
    await secrets.sync({"db": VALUE}, ("db", "app", "a"), restart=True)

    assert "exclave.dev/secret-version" in restarted
    assert read_template(secrets, reader) == restarted
