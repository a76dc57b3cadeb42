"""Kubeconfigs of customers, each tried against a real API server."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from exclave.base.clock import SystemClock
from exclave.base.ids import SystemRandomness
from exclave.base.json_values import Json
from exclave.base.secrets import Secret
from exclave.runner.kube.access.clusters import ClusterConnector, NamedKubeconfig
from exclave.runner.kube.access.in_cluster import PodAccount
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.connection import Connection
from exclave.runner.kube.api.errors import AccessRefused, classify
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import InCluster, InlineCluster, KubeconfigCluster
from tests.support.kubernetes import Cluster

Write = Callable[..., Path]


@pytest.fixture
def write(cluster: Cluster, tmp_path: Path) -> Write:
    """Writes a kubeconfig of the cluster with some user, and fields of the cluster's entry."""

    def write_file(user: Json, **entry: Json) -> Path:
        ca = base64.b64encode(cluster.ca.encode()).decode()
        entry = {"server": cluster.server, "certificate-authority-data": ca, **entry}
        document = {
            "current-context": "main",
            "contexts": [
                {"name": "main", "context": {"cluster": "c", "user": "u"}},
                {"name": "nobody", "context": {"cluster": "c"}},
                {"name": "lost", "context": {"cluster": "c", "user": "gone"}},
            ],
            "clusters": [{"name": "c", "cluster": entry}],
            "users": [{"name": "u", "user": user}],
        }
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(document))
        return file

    return write_file


def make_connector(
    file: Path, context: str = "", noted: list[Secret] | None = None, **more: object
) -> ClusterConnector:
    return ClusterConnector(
        SystemClock(),
        (noted if noted is not None else []).append,
        lambda: {"default": NamedKubeconfig(file, context)},
        path="/usr/bin:/bin",
        **more,  # type: ignore[arg-type]
    )


async def ask(connection: Connection) -> str:
    async with ClusterClient(connection, SystemClock(), SystemRandomness()) as client:
        return await client.read_cluster_uid()


async def test_a_token_opens_the_cluster_and_is_masked(cluster: Cluster, write: Write) -> None:
    noted: list[Secret] = []
    connector = make_connector(write({"token": cluster.token}), "main", noted)

    assert await ask(await connector.connect(KubeconfigCluster()))
    assert [secret.reveal() for secret in noted] == [cluster.token]


async def test_client_certificates_open_it_as_data_and_as_files(
    cluster: Cluster, write: Write
) -> None:
    parts = {"client-certificate": "client.crt", "client-key": "client.key"}
    files = {name: str(cluster.folder / file) for name, file in parts.items()}
    data = {
        f"{name}-data": base64.b64encode((cluster.folder / file).read_bytes()).decode()
        for name, file in parts.items()
    }
    for user in (files, data):
        connection = await make_connector(write(user)).connect(KubeconfigCluster())

        assert await ask(connection)


async def test_a_token_file_is_found_beside_the_kubeconfig(
    cluster: Cluster, write: Write, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(f"{cluster.token}\n")
    connector = make_connector(write({"tokenFile": "token", "token": "not this"}))

    assert await ask(await connector.connect(KubeconfigCluster()))


async def test_a_plugin_is_asked_for_the_token_and_for_the_next_one(
    cluster: Cluster, write: Write, tmp_path: Path
) -> None:
    script = tmp_path / "plugin"
    script.write_text(
        "#!/bin/sh\n"
        'echo call >> "$CALLS"\n'
        'test "$1" = get || exit 3\n'
        'case "$KUBERNETES_EXEC_INFO" in *127.0.0.1*) ;; *) exit 4;; esac\n'
        'if test "$(wc -l < "$CALLS")" = 1; then t=expired; else t="$TOKEN"; fi\n'
        'printf \'{"kind": "ExecCredential", "status": {"token": "%s"}}\' "$t"\n'
    )
    script.chmod(0o700)
    calls = tmp_path / "calls"
    env = [{"name": "TOKEN", "value": cluster.token}, {"name": "CALLS", "value": str(calls)}]
    plugin = {"command": "./plugin", "args": ["get"], "env": env, "provideClusterInfo": True}
    connector = make_connector(write({"exec": plugin}))

    assert await ask(await connector.connect(KubeconfigCluster()))
    assert calls.read_text().count("call") == 2


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 7", "code 7"),
        ("echo broken >&2; exit 1", "broken"),
        ("echo no json", "no ExecCredential"),
        ("echo '{}'", "no token"),
        (
            'echo \'{"status": {"token": "t", "expirationTimestamp": "soon"}}\'',
            "`soon` as the time of expiry",
        ),
    ],
)
async def test_a_plugin_that_fails_says_why(
    write: Write, tmp_path: Path, script: str, words: str
) -> None:
    file = tmp_path / "plugin"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o700)
    connection = await make_connector(write({"exec": {"command": str(file)}})).connect(
        KubeconfigCluster()
    )

    with pytest.raises(AccessRefused, match=words) as refused:
        await ask(connection)

    assert classify(refused.value) is Reason.ACCESS_DENIED


async def test_a_plugin_that_is_not_installed_says_how_to_install_it(write: Write) -> None:
    user = {"exec": {"command": "no-such-plugin", "installHint": "Install it like this."}}
    connection = await make_connector(write(user)).connect(KubeconfigCluster())

    with pytest.raises(AccessRefused, match="cannot be started") as refused:
        await ask(connection)

    assert refused.value.advice == "Install it like this."


@pytest.mark.parametrize(
    ("user", "entry", "context", "words"),
    [
        ({"token": "t"}, {"insecure-skip-tls-verify": True}, "", "check of the server's certificate"),
        ({"token": "t"}, {"server": "http://cluster.example"}, "", "has to use https"),
        ({"token": "t"}, {"certificate-authority-data": "%"}, "", "PEM in base64"),
        ({"username": "u", "password": "p"}, {}, "", "`username`"),
        ({"auth-provider": {"name": "gcp"}}, {}, "", "`auth-provider`"),
        ({"token": "t", "as": "root"}, {}, "", "`as`"),
        ({"client-certificate": "gone.crt"}, {}, "", "cannot be read"),
        ({"token": "t"}, {}, "other", "no context `other`"),
        ({"token": "t"}, {}, "lost", "no user `gone`"),
    ],
)  # fmt: skip
async def test_what_a_runner_does_not_do_is_refused_with_the_reason(
    write: Write, user: Json, entry: dict[str, Json], context: str, words: str
) -> None:
    connector = make_connector(write(user, **entry), context)

    with pytest.raises(AccessRefused, match=words):
        await connector.connect(KubeconfigCluster())


async def test_an_unknown_name_is_refused_with_the_command_that_helps(write: Write) -> None:
    connector = make_connector(write({"token": "t"}))

    with pytest.raises(AccessRefused, match="no kubeconfig `other`; it has `default`") as refused:
        await connector.connect(KubeconfigCluster(name="other"))

    assert "--kubeconfig other=FILE" in refused.value.advice


async def test_an_output_can_be_a_kubeconfig_without_files_and_commands(
    cluster: Cluster, write: Write
) -> None:
    placeholder = "((exclave:output:sandbox:kube_config))"
    text = write({"token": cluster.token}).read_text()
    reference = InlineCluster(kubeconfig=placeholder)
    connector = make_connector(Path("/nowhere"))

    assert await ask(await connector.connect(reference, {placeholder: text}.__getitem__))
    for user in ({"tokenFile": "/etc/passwd"}, {"exec": {"command": "id"}}):
        evil = write(user).read_text()
        with pytest.raises(AccessRefused):
            await connector.connect(reference, {placeholder: evil}.__getitem__)


async def test_a_pod_uses_its_own_account(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(cluster.ca)
    (tmp_path / "token").write_text("expired")
    host, _, port = cluster.server.removeprefix("https://").partition(":")
    pod = PodAccount(host, port, tmp_path)
    connection = await make_connector(Path("/nowhere"), pod=pod).connect(InCluster())
    await connection.credential.read_headers()
    (tmp_path / "token").write_text(cluster.token)

    assert await ask(connection)
    with pytest.raises(AccessRefused, match="does not run in a cluster"):
        await make_connector(Path("/nowhere")).connect(InCluster())
