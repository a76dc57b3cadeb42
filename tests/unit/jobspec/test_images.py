"""The jobs that copy images, and what an install's outputs tell about them."""

from dataclasses import replace

import pytest

from exclave.appconfig.model.kinds.container_image import AwsEcr, ContainerImage, ImageSource
from exclave.appconfig.model.kinds.other_components import DockerBuild
from exclave.base.image_names import expand_image
from exclave.base.json_values import JsonObject
from exclave.domain.intents import SyncPart
from exclave.domain.stacks import Cloud
from exclave.jobspec.facts import ImageFacts
from exclave.jobspec.images import find_registry, make_image_job, read_pinned_image
from exclave.wire.images import PinnedImage, RegistryRef
from tests.unit.jobspec.jobspec_kit import ARTIFACT, DIGEST, render

FACTS = ImageFacts(ARTIFACT, render, "ins_1", Cloud.LOCAL, {}, "deploy")
PUBLIC = ContainerImage(
    type="container_image", name="web", public=ImageSource(image_url="nginx", tag="1.29")
)
PRIVATE = ContainerImage(
    type="container_image", name="web", aws_ecr=AwsEcr(image_url="1.dkr.ecr/x", tag="1")
)
BUILT = DockerBuild(type="docker_build", name="web", dockerfile="Dockerfile")
SYNC = SyncPart("component:web")


def test_a_copy_is_named_by_its_content() -> None:
    spec = make_image_job(PUBLIC, FACTS, SYNC)

    assert (spec.artifact, spec.tag, spec.destroy) == (ARTIFACT, "x" + "a" * 40, False)
    assert (spec.source, spec.timeout_s) == ("docker.io/library/nginx", 300.0)
    assert make_image_job(PUBLIC, FACTS, SyncPart("component:web", destroy=True)).destroy


def test_only_a_public_image_can_be_used_where_it_is() -> None:
    assert make_image_job(PRIVATE, FACTS, SYNC).source == ""
    assert make_image_job(BUILT, FACTS, SYNC).source == ""


@pytest.mark.parametrize(
    ("target", "outputs", "wanted"),
    [
        (
            Cloud.AWS,
            {"ecr": {"repository_url": "1.dkr.ecr.eu-west-1.amazonaws.com/shop"}},
            RegistryRef(
                type="ecr",
                repository="1.dkr.ecr.eu-west-1.amazonaws.com/shop",
                folder="web",
                region="eu-west-1",
                role="deploy",
            ),
        ),
        (
            Cloud.GCP,
            {"gar": {"repository_url": "https://eu-docker.pkg.dev/acme/shop/"}},
            RegistryRef(
                type="gar",
                repository="eu-docker.pkg.dev/acme/shop/web",
                folder="web",
                role="deploy",
            ),
        ),
        (
            Cloud.AZURE,
            {"acr": {"login_server": "acme.azurecr.io"}},
            RegistryRef(
                type="acr", repository="acme.azurecr.io/ins-1/web", folder="web", role="deploy"
            ),
        ),
        (Cloud.LOCAL, {}, RegistryRef(type="stack", folder="web")),
        (Cloud.AWS, {}, RegistryRef(type="stack", folder="web")),
        (Cloud.AWS, {"ecr": "none"}, RegistryRef(type="stack", folder="web")),
    ],
)
def test_the_registry_is_the_one_that_the_sandbox_made_else_that_of_the_stack(
    target: Cloud, outputs: JsonObject, wanted: RegistryRef
) -> None:
    assert find_registry(replace(FACTS, target=target, sandbox=outputs), "web") == wanted


def test_an_image_is_pinned_when_its_outputs_say_by_which_digest() -> None:
    image: JsonObject = {"repository": "reg.example/web", "tag": "x1", "digest": DIGEST, "size": 7}

    assert read_pinned_image({"image": image}) == PinnedImage(
        repository="reg.example/web", tag="x1", digest=DIGEST
    )
    pulled = read_pinned_image({"image": {**image, "pull_secret": "exclave-registry"}})
    assert pulled is not None
    assert pulled.pull_secret
    assert read_pinned_image(None) is None
    assert read_pinned_image({"image": "reg.example/web"}) is None
    assert read_pinned_image({"image": {**image, "digest": ""}}) is None


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("nginx", "docker.io/library/nginx"),
        ("bitnami/redis", "docker.io/bitnami/redis"),
        ("ghcr.io/acme/web", "ghcr.io/acme/web"),
        ("localhost/web", "localhost/web"),
        ("registry:5000/web", "registry:5000/web"),
    ],
)
def test_a_name_without_a_host_is_on_docker_hub(name: str, wanted: str) -> None:
    assert expand_image(name) == wanted
