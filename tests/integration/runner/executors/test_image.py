"""Images are copied into the registry of an install: the real thing between two registries."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from exclave.base.secrets import Secret
from exclave.client.oci.client import Login, OciClient
from exclave.client.transport import Link
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.executors.image import ImageExecutor, ImageKit
from exclave.runner.images.cloud_logins import CloudLogins
from exclave.runner.images.stack_registry import keep_registry, parse_registry, read_registry
from exclave.runner.jobs.executor import JobRun
from exclave.runner.kube.access.clusters import Clouds
from exclave.runner.kube.access.eks import AwsEndpoints
from exclave.runner.secrets.store import FileSecrets
from exclave.wire.images import ImageSpec
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from tests.support.clouds import AWS_MACHINE
from tests.support.images import MadeImage, make_image, make_index, make_layer, push_image
from tests.support.registries import PASSWORD, USERNAME, serve_registry
from tests.support.scripted_api import ScriptedApi, say
from tests.unit.runner.work_kit import CLOCK, ExecutionHarness, make_dispatch

SECRETS = {"registry_username": USERNAME, "registry_password": PASSWORD}


@dataclass
class Install:
    """A runner between the vendor's registry and that of the customer."""

    folder: Path
    vendor: OciClient
    customer: OciClient
    url: str
    clouds: CloudLogins = field(default_factory=CloudLogins)
    count: int = 0

    async def push(self, image: MadeImage) -> MadeImage:
        await push_image(self.vendor.open_repository("apps/demo"), image, self.folder)
        return image

    async def run(
        self, digest: str, *, secrets: dict[str, str] | None = None, **more: Any
    ) -> Outcome:
        self.count += 1
        folder = self.folder / f"run-{self.count}"
        folder.mkdir()
        self.bench = ExecutionHarness(folder, SECRETS if secrets is None else secrets)
        kit = ImageKit(
            open_registry=self._open,
            secrets=FileSecrets(self.bench.secrets_file),
            read_registry=lambda: read_registry(self.folder),
            link=Link(""),
            clock=CLOCK,
            clouds=self.clouds,
            keep_free_bytes=0,
        )
        spec = ImageSpec.model_validate(
            {
                "artifact": {"repository": "apps/demo", "digest": digest},
                "target": {"type": "stack", "folder": "web"},
                "tag": "x" + digest.removeprefix("sha256:")[:40],
                **more,
            }
        )
        work = JobRun(make_dispatch(spec), self.bench.folder, cast("Uplink", None))
        return await ImageExecutor(kit).run(work, self.bench.log, self.bench.stop)

    @asynccontextmanager
    async def _open(self, uplink: Uplink) -> AsyncIterator[OciClient]:
        del uplink
        yield self.vendor


@pytest.fixture(scope="module")
def registries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    folder = tmp_path_factory.mktemp("registries")
    with (
        serve_registry(folder / "vendor") as vendor,
        serve_registry(folder / "customer", login=True) as customer,
    ):
        yield vendor, customer


@pytest.fixture
async def install(
    registries: tuple[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Install]:
    name = request.node.name.replace("_", "-").partition("[")[0]
    login = Login(USERNAME, Secret(PASSWORD))
    url = f"{registries[1]}/{name}"
    async with OciClient(registries[0]) as vendor, OciClient(url, login=login) as customer:
        yield Install(tmp_path, vendor, customer, url)


async def test_an_image_is_copied_and_its_outputs_name_the_copy(install: Install) -> None:
    index = make_index(
        make_image(make_layer(1, 40_000)), make_image(make_layer(2), platform="linux/arm64")
    )
    await install.push(index)
    keep_registry(install.folder, install.url)

    outcome = await install.run(index.digest)

    repository = f"{install.url.removeprefix('http://')}/web"
    tag = "x" + index.digest.removeprefix("sha256:")[:40]
    assert outcome.outputs["image"] == {
        "repository": repository,
        "tag": tag,
        "digest": index.digest,
        "ref": f"{repository}@{index.digest}",
        "media_type": index.media_type,
        "size": sum(len(blob) for child in index.children for blob in child.blobs),
        "platforms": ["linux/amd64", "linux/arm64"],
        "pull_secret": True,
        "source": "",
    }
    copied = await install.customer.open_repository("web").fetch_manifest(tag)
    assert copied.data == index.data
    assert PASSWORD not in install.bench.read_log()


async def test_a_second_sync_moves_no_blob(install: Install) -> None:
    image = await install.push(make_image(make_layer(3, 30_000)))
    keep_registry(install.folder, install.url)
    first = await install.run(image.digest)

    second = await install.run(image.digest)

    assert second.outputs == first.outputs
    assert "0 of 2 blobs, 0 B of" in install.bench.read_log()


async def test_the_platform_of_a_single_image_comes_from_its_config(install: Install) -> None:
    image = await install.push(make_image(make_layer(4), platform="linux/arm64/v8"))
    keep_registry(install.folder, install.url)

    outcome = await install.run(image.digest)

    assert outcome.outputs["image"]["platforms"] == ["linux/arm64/v8"]  # type: ignore[call-overload,index]


async def test_a_registry_of_aws_is_entered_with_the_identity_of_the_machine(
    install: Install,
) -> None:
    """The exchanges with AWS are recorded; the registry behind them is real and wants the login."""
    image = await install.push(make_image(make_layer(6, 20_000)))
    repository = f"{install.url.removeprefix('http://')}/ecr"
    token = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
    script = {**AWS_MACHINE, "/": [say({"authorizationData": [{"authorizationToken": token}]})]}
    target = {"type": "ecr", "repository": repository, "folder": "web", "region": "eu-west-1"}
    async with ScriptedApi(script) as cloud:
        aws = AwsEndpoints(cloud.url, cloud.url)
        install.clouds = CloudLogins(Clouds(aws=aws), ecr=cloud.url)
        outcome = await install.run(image.digest, secrets={}, target=target)

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    copied = install.customer.open_repository("ecr")
    assert (await copied.fetch_manifest(image.digest)).data == image.data
    found: Any = outcome.outputs["image"]
    assert (found["repository"], found["pull_secret"]) == (repository, False)
    assert PASSWORD not in install.bench.read_log()


async def test_without_a_registry_a_public_image_is_named_by_its_digest(install: Install) -> None:
    image = await install.push(make_image(make_layer(5)))

    outcome = await install.run(image.digest, source="docker.io/library/nginx")

    assert outcome.state is OutcomeState.SUCCEEDED
    found: Any = outcome.outputs["image"]
    assert found["ref"] == f"docker.io/library/nginx@{image.digest}"
    assert (found["repository"], found["pull_secret"]) == ("docker.io/library/nginx", False)
    assert "not copied" in install.bench.read_log()


async def test_without_a_registry_an_image_of_the_vendor_fails(install: Install) -> None:
    image = await install.push(make_image(make_layer(6)))

    outcome = await install.run(image.digest)

    assert outcome.reason is Reason.IMAGE_UNAVAILABLE
    assert "--registry URL" in outcome.message


async def test_a_wrong_password_names_the_secrets(install: Install) -> None:
    image = await install.push(make_image(make_layer(7)))
    keep_registry(install.folder, install.url)
    wrong = {**SECRETS, "registry_password": "wrong-password"}

    outcome = await install.run(image.digest, secrets=wrong)

    assert outcome.reason is Reason.ACCESS_DENIED
    assert "`registry_username` and `registry_password`" in outcome.message
    assert "wrong-password" not in install.bench.read_log()


async def test_an_artifact_that_is_gone(install: Install) -> None:
    keep_registry(install.folder, install.url)

    outcome = await install.run("sha256:" + "0" * 64)

    assert outcome.reason is Reason.IMAGE_UNAVAILABLE
    assert "there is no image `apps/demo@sha256:000" in outcome.message


async def test_a_teardown_removes_the_tag(install: Install) -> None:
    image = await install.push(make_image(make_layer(8)))
    keep_registry(install.folder, install.url)
    await install.run(image.digest)

    gone = await install.run(image.digest, destroy=True)
    again = await install.run(image.digest, destroy=True)

    tag = "x" + image.digest.removeprefix("sha256:")[:40]
    assert (gone.state, again.state) == (OutcomeState.SUCCEEDED, OutcomeState.SUCCEEDED)
    repository = install.customer.open_repository("web")
    assert not await repository.has_manifest(tag) or "stays" in install.bench.read_log()


async def test_only_some_platforms_get_a_tag_of_their_own(install: Install) -> None:
    index = make_index(make_image(make_layer(1)), make_image(make_layer(2), platform="linux/arm64"))
    await install.push(index)
    keep_registry(install.folder, install.url)

    outcome = await install.run(index.digest, platforms=["linux/arm64"])

    found: Any = outcome.outputs["image"]
    assert found["digest"] == index.children[1].digest
    assert found["tag"] == "x" + index.children[1].digest.removeprefix("sha256:")[:40]


@pytest.mark.parametrize(("reason", "state"), [(Reason.CANCELLED, "cancelled")])
async def test_a_stop_in_mid_copy_ends_it(install: Install, reason: Reason, state: str) -> None:
    layers = [make_layer(30 + number, 5_000_000) for number in range(6)]
    image = await install.push(make_image(*layers))
    keep_registry(install.folder, install.url)
    task = asyncio.create_task(install.run(image.digest))
    await asyncio.sleep(0)
    install.bench.stop.request(reason, 1.0)

    outcome = await task

    assert (outcome.state, outcome.reason) == (state, reason)
    assert list((install.bench.folder / "blobs").glob("*")) == []


async def test_a_timeout_ends_a_copy(install: Install) -> None:
    image = await install.push(make_image(make_layer(40, 5_000_000)))
    keep_registry(install.folder, install.url)

    outcome = await install.run(image.digest, timeout_s=0.001)

    assert (outcome.state, outcome.reason) == (OutcomeState.FAILED, Reason.TIMEOUT)


@pytest.mark.parametrize(
    ("text", "repository"),
    [
        ("https://registry.example.com", "registry.example.com/web"),
        ("http://127.0.0.1:5000/acme/images/", "127.0.0.1:5000/acme/images/web"),
        ("registry.example.com/acme", "registry.example.com/acme/web"),
    ],
)
def test_the_address_of_a_registry(text: str, repository: str) -> None:
    assert parse_registry(text).name_image("web").repository == repository
