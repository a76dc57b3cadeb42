"""Images in objects: which are pinned, which come from outside, which need a login."""

from typing import Any

import pytest

from exclave.runner.kube.images import find_pod, pin_images
from exclave.wire.images import PinnedImage

DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
IMAGE = PinnedImage(repository="registry.example.com/acme/web", tag="x1", digest=DIGEST)
NAME = "registry.example.com/acme/web:x1"


def pod(*images: str, init: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": f"c{n}", "image": image} for n, image in enumerate(images)]
    }
    if init:
        spec["initContainers"] = [{"name": "i", "image": init}]
    return spec


def make(kind: str, version: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize(
    ("kind", "version"),
    [("Deployment", "apps/v1"), ("StatefulSet", "apps/v1"), ("DaemonSet", "apps/v1"),
     ("Job", "batch/v1")],
)  # fmt: skip
def test_images_of_synced_components_are_pinned(kind: str, version: str) -> None:
    workload = make(kind, version, {"replicas": 2, "template": {"spec": pod(NAME, init=NAME)}})

    pinned = pin_images([workload], [IMAGE])

    spec: Any = pinned.objects[0]["spec"]
    assert spec["template"]["spec"]["containers"][0]["image"] == f"{NAME}@{DIGEST}"
    assert spec["template"]["spec"]["initContainers"][0]["image"] == f"{NAME}@{DIGEST}"
    assert spec["replicas"] == 2
    assert workload["spec"]["template"]["spec"]["containers"][0]["image"] == NAME
    assert pinned.outside == ()


def test_pods_and_cron_jobs_are_pinned_too() -> None:
    cron = {"jobTemplate": {"spec": {"template": {"spec": pod(NAME)}}}}

    pinned = pin_images([make("Pod", "v1", pod(NAME)), make("CronJob", "batch/v1", cron)], [IMAGE])

    assert str(pinned.objects).count(f"{NAME}@{DIGEST}") == 2


def test_what_is_pinned_already_stays_as_it_is() -> None:
    once = pin_images([make("Pod", "v1", pod(NAME))], [IMAGE])

    assert pin_images(once.objects, [IMAGE]) == once


def test_an_image_that_is_named_by_its_digest_alone_is_that_of_the_component() -> None:
    by_digest = f"{IMAGE.repository}@{DIGEST}"

    pinned = pin_images([make("Pod", "v1", pod(by_digest))], [IMAGE])

    assert pinned.outside == ()
    assert pinned.objects[0]["spec"]["containers"][0]["image"] == by_digest  # type: ignore[index,call-overload]


def test_an_image_with_another_digest_comes_from_outside() -> None:
    other = f"{NAME}@{OTHER}"

    pinned = pin_images([make("Pod", "v1", pod(other))], [IMAGE])

    assert pinned.outside == (other,)
    assert pinned.list_outside() == [other]


def test_images_from_outside_are_listed_with_their_full_names() -> None:
    pinned = pin_images([make("Pod", "v1", pod("redis:7", "busybox", NAME, "redis:7"))], [IMAGE])

    assert pinned.list_outside() == [
        "docker.io/library/busybox:latest (not pinned)",
        "docker.io/library/redis:7 (not pinned)",
    ]
    assert pinned.objects[0]["spec"]["containers"][0]["image"] == "redis:7"  # type: ignore[index,call-overload]


def test_short_names_and_full_names_are_the_same_image() -> None:
    hub = PinnedImage(repository="docker.io/library/nginx", tag="x2", digest=DIGEST)

    pinned = pin_images([make("Pod", "v1", pod("nginx:x2"))], [hub])

    assert f"nginx:x2@{DIGEST}" in str(pinned.objects)


def test_texts_in_other_kinds_stay_as_they_are() -> None:
    custom = make("Database", "example.com/v1", {"template": {"spec": pod(NAME)}})
    broken = make("Deployment", "apps/v1", {"template": "none"})

    pinned = pin_images([custom, broken], [IMAGE])

    assert pinned.objects == (custom, broken)
    assert pinned.outside == ()


def test_pods_that_pull_with_the_login_of_the_stack_name_its_secret() -> None:
    private = IMAGE.model_copy(update={"pull_secret": True})
    own: Any = make("Pod", "v1", pod(NAME))
    own["spec"]["imagePullSecrets"] = [{"name": "own"}]
    objects = [own, make("Pod", "v1", pod(NAME)), make("Pod", "v1", pod("redis:7"))]

    pinned = pin_images(objects, [private], pull_secret="login")
    public = pin_images(objects, [IMAGE], pull_secret="login")

    named = [(find_pod(value) or {}).get("imagePullSecrets") for value in pinned.objects]
    assert named == [[{"name": "own"}, {"name": "login"}], [{"name": "login"}], None]
    assert (find_pod(public.objects[1]) or {}).get("imagePullSecrets") is None
    again = pin_images(pinned.objects, [private], pull_secret="login")
    assert again.objects == pinned.objects
