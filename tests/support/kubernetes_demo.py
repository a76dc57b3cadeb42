"""`make demo-kubernetes`: the example app on a real Kubernetes API server, with a user's commands.

The cluster is the one of the tests: its node runs nothing, so the base image of the example is a small
stand-in. It is in a registry on this machine, which is also where the install keeps its images.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from exclave.client.oci.client import OciClient
from tests.faults.site import exclave
from tests.support.apps import edit
from tests.support.buildah import find_buildah
from tests.support.dev_server import DevServer, open_dev
from tests.support.images import describe_rootfs, make_image, make_tar_layer, push_image
from tests.support.kubernetes import Cluster, find_folder, share_cluster
from tests.support.kubernetes_tools import need_helm, need_kubectl
from tests.support.registries import serve_registry
from tests.support.tools import need_terraform

EXAMPLE = Path(__file__).parents[2] / "examples" / "guestbook"
INSTALL = "acme"
NAMESPACE = f"guestbook-{INSTALL}"
SOURCE = "docker.io/library/nginx"
TAG = "1.29-alpine"
NOT_BUILT = f"""name = "image"
type = "container_image"

[public]
image_url = "{SOURCE}"
tag = "{TAG}"
"""
"""The image of the example on a machine that cannot build one."""


@dataclass(frozen=True)
class KubernetesSite:
    """A control plane whose installs use the cluster, and the example app beside it."""

    dev: DevServer
    cluster: Cluster

    def show(self, *words: str) -> None:
        """Run a command and show it with its output."""
        print(f"\n$ exclave {' '.join(words)}", flush=True)
        subprocess.run([*exclave(), *words], cwd=self.dev.folder, env=self.dev.user_env, check=True)

    def kubectl(self, *words: str) -> str:
        """Return what kubectl prints about the namespace of the install."""
        argv = [str(need_kubectl()), "--namespace", NAMESPACE, *words]
        return subprocess.run(
            argv, env=self.cluster.environment, capture_output=True, text=True, check=True
        ).stdout


@contextmanager
def open_site(folder: Path, cluster: Cluster) -> Iterator[KubernetesSite]:
    """Start `exclave dev` with access to the cluster, and a registry with the example's image."""
    need_terraform()
    app = folder / EXAMPLE.name
    shutil.copytree(EXAMPLE, app)
    tools = folder / "tools"
    tools.mkdir()
    for program in (need_helm(), need_kubectl()):
        (tools / program.name).symlink_to(program)
    with serve_registry(folder / "registry") as url:
        repository = f"{url.removeprefix('http://')}/library/nginx"
        push_stand_in(url, folder)
        path = provide_buildah(app)
        edit(app, "components/image.toml", SOURCE, repository)
        options = ("--kubeconfig", str(cluster.kubeconfig), "--registry", f"{url}/{INSTALL}")
        env = {"TOOLS": str(tools), "GIT_ALLOW_PRIVATE": "true", "PATH": path}
        with open_dev(folder, *options, **env) as dev:
            yield KubernetesSite(dev, cluster)


def push_stand_in(url: str, folder: Path) -> None:
    """Put a small image into a registry, under the name of the one that the example uses."""
    asyncio.run(_push_stand_in(url, folder))


def provide_buildah(app: Path) -> str:
    """Return a PATH with buildah; without one, let the app take the base image as it is."""
    program, problem = find_buildah()
    if not problem:
        return f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    print(
        f"There is no buildah ({problem}): the image is not built, the base image is deployed as it is.",
        flush=True,
    )
    (app / "components" / "image.toml").write_text(NOT_BUILT)
    return os.environ["PATH"]


async def _push_stand_in(url: str, folder: Path) -> None:
    layer = make_tar_layer({"etc/nginx/nginx.conf": b"events {}\n"})
    image = make_image(layer, config=describe_rootfs(layer))
    async with OciClient(url, None, httpx.AsyncHTTPTransport()) as client:
        await push_image(client.open_repository("library/nginx"), image, folder, TAG)


def deploy_example(site: KubernetesSite) -> None:
    """Provision the example: look at a plan, approve it by its digest, approve the rest."""
    site.show("apps", "create", EXAMPLE.name)
    site.show("apps", "sync", EXAMPLE.name, "--wait")
    site.show("builds", "list", "--app", EXAMPLE.name)
    site.show("installs", "create", EXAMPLE.name, "--name", INSTALL, "--here")
    _, digest = site.dev.await_gate(INSTALL)
    site.show("workflows", "approve", INSTALL, "--digest", digest)
    site.show("workflows", "approve-all", INSTALL, "--yes")
    site.show("workflows", "watch", INSTALL)
    site.show("workflows", "plan", INSTALL, "web.plan")
    site.show("installs", "approve-all", INSTALL, "on", "--yes")


def main() -> int:
    """Deploy the example, change it, look at it and remove it; return 0 if all of that worked."""
    print("Starting a Kubernetes API server (its first build takes minutes) …", flush=True)
    temporary = tempfile.TemporaryDirectory(prefix="exclave-demo-")
    try:
        with (
            temporary as folder,
            share_cluster(find_folder()) as cluster,
            open_site(Path(folder), cluster) as site,
        ):
            deploy_example(site)
            site.show("actions", "run", INSTALL, "check", "--wait")
            site.show("installs", "inputs", "set", INSTALL, "visitors=350", "--wait")
            print(f"\n$ kubectl get all\n{site.kubectl('get', 'all')}", flush=True)
            site.show("installs", "deprovision", INSTALL, "--wait", "--yes")
    except subprocess.CalledProcessError as failed:
        print(f"\n{' '.join(map(str, failed.cmd))} failed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
