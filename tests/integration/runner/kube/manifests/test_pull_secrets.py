"""The login of the install's registry for pods of a manifest: made, renewed, removed."""

import base64
import json
from dataclasses import replace
from typing import Any

from exclave.base.json_values import object_or_empty
from exclave.base.secrets import Secret
from exclave.runner.kube.pull_secrets import (
    PullLogin,
    PullSecrets,
    name_pull_secret,
    renew_pull_secrets,
)
from exclave.wire.jobs import Reason
from tests.integration.runner.kube.manifests.objects import config_map, deployment, write
from tests.support.manifests import ManifestHarness, open_client

PASSWORD = "registry-pass-word"
IMAGE = {
    "repository": "registry.example.com/acme/web",
    "tag": "x1",
    "digest": "sha256:" + "a" * 64,
    "pull_secret": True,
}
NAME = "registry.example.com/acme/web:x1"


def give_login(bench: ManifestHarness, password: str = PASSWORD) -> PullLogin:
    login = PullLogin("registry.example.com", "acme", Secret(password))

    async def read_login() -> PullLogin | None:
        return login

    bench.kit = replace(bench.kit, read_pull_login=read_login)
    return login


def find_secret(bench: ManifestHarness) -> str:
    name = name_pull_secret(bench.base.queue, "web")
    return f"/api/v1/namespaces/{bench.namespace}/secrets/{name}"


def read_password(bench: ManifestHarness) -> str:
    data = object_or_empty(bench.cluster.request("GET", find_secret(bench)).get("data"))
    document = json.loads(base64.b64decode(str(data[".dockerconfigjson"])))
    return str(document["auths"]["registry.example.com"]["password"])


async def test_pods_pull_with_a_login_that_comes_and_goes_with_the_part(
    bench: ManifestHarness,
) -> None:
    give_login(bench)
    planned = await bench.plan(write(deployment("web", image=NAME)), images=[IMAGE])
    applied = await bench.apply(planned, images=[IMAGE])

    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/web"
    live: Any = bench.cluster.request("GET", path)
    secret = find_secret(bench)
    named = live["spec"]["template"]["spec"]["imagePullSecrets"]
    assert named == [{"name": secret.rpartition("/")[2]}]
    assert read_password(bench) == PASSWORD
    plan = json.dumps(await bench.read_plan(planned))
    encoded = base64.b64encode(f"acme:{PASSWORD}".encode()).decode()
    for text in (plan, applied.text, applied.outcome.model_dump_json()):
        assert PASSWORD not in text
        assert encoded not in text

    torn = await bench.tear_down()
    assert torn.outcome.state == "succeeded", torn.text
    assert not bench.cluster.exists(secret)


async def test_a_login_that_no_pod_needs_any_more_is_removed(bench: ManifestHarness) -> None:
    give_login(bench)
    planned = await bench.plan(write(deployment("web", image=NAME)), images=[IMAGE])
    await bench.apply(planned, images=[IMAGE])

    await bench.deploy(write(config_map("other", v="1")))

    assert not bench.cluster.exists(find_secret(bench))


async def test_without_a_login_nothing_is_deployed(bench: ManifestHarness) -> None:
    planned = await bench.plan(write(deployment("web", image=NAME)), images=[IMAGE])

    applied = await bench.apply(planned, images=[IMAGE])

    assert applied.outcome.reason is Reason.SECRET_MISSING
    assert "registry_password" in applied.outcome.message
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/web"
    assert not bench.cluster.exists(path)


async def test_a_secret_of_somebody_else_is_neither_written_nor_removed(
    bench: ManifestHarness,
) -> None:
    give_login(bench)
    path, _, name = find_secret(bench).rpartition("/")
    theirs = bench.cluster.request("POST", path, {"metadata": {"name": name}})

    planned = await bench.plan(write(deployment("web", image=NAME)), images=[IMAGE])
    applied = await bench.apply(planned, images=[IMAGE])
    await bench.tear_down()

    assert applied.outcome.reason is Reason.OBJECT_REFUSED
    assert bench.cluster.request("GET", find_secret(bench)) == theirs


async def test_a_changed_login_reaches_the_secrets_of_its_install_only(
    bench: ManifestHarness,
) -> None:
    give_login(bench)
    planned = await bench.plan(write(deployment("web", image=NAME)), images=[IMAGE])
    await bench.apply(planned, images=[IMAGE])
    renewed = give_login(bench, "another-pass-word")
    lines: list[str] = []
    async with open_client(bench.cluster) as client:
        other = PullSecrets(client, "inst_other", "web", _read_old, lambda _: None, lines.append)
        await other.write_all([bench.namespace])
        lines.clear()
        await renew_pull_secrets(client, bench.base.queue, renewed, lines.append)
        await renew_pull_secrets(client, bench.base.queue, renewed, lines.append)

    assert read_password(bench) == "another-pass-word"
    name = find_secret(bench).rpartition("/")[2]
    here = [line for line in lines if f" {bench.namespace}/" in line]
    assert here == [f"Secret {bench.namespace}/{name}: renewed"]


async def _read_old() -> PullLogin | None:
    return PullLogin("registry.example.com", "acme", Secret("old-pass-word"))
