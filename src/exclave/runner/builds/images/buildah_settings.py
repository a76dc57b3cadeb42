"""The settings that buildah reads: of the job only, nothing of the machine's own configuration."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from exclave.base.json_values import Json
from exclave.runner.builds.charts.downloads import make_login
from exclave.runner.builds.images.layer_proxy import LayerProxy
from exclave.runner.builds.recipe import BuildWork
from exclave.runner.images.references import parse_image
from exclave.runner.outcomes import WorkFailed

_POLICY: Final = {"default": [{"type": "insecureAcceptAnything"}]}
"""Images are verified by digest and policies of ours, not by signature rules of the machine."""
_REGISTRIES: Final = """unqualified-search-registries = ["docker.io"]
short-name-mode = "disabled"
"""
_STORAGE: Final = '[storage]\ndriver = "vfs"\n'
_LOOPBACK: Final = """
[[registry]]
location = "{host}"
insecure = true
"""
_LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost")


def write_settings(
    work: BuildWork, stores: Path, bases: list[str], cache: LayerProxy | None = None
) -> None:
    """Make the folder of the stores, with the settings in it."""
    hosts = {base.partition("/")[0] for base in bases}
    local = [host for host in sorted(hosts) if host.partition(":")[0] in _LOOPBACK_HOSTS]
    logins = _list_logins(work, bases)
    if cache is not None:
        local.append(cache.host)
        logins[cache.host] = {"auth": cache.login.write_basic().removeprefix("Basic ")}
    registries = _REGISTRIES + "".join(_LOOPBACK.format(host=host) for host in local)
    workspace = work.context.workspace
    with workspace.touch():
        stores.mkdir(mode=0o700)
    workspace.write(stores / "policy.json", json.dumps(_POLICY).encode())
    workspace.write(stores / "registries.conf", registries.encode())
    workspace.write(stores / "storage.conf", _STORAGE.encode())
    workspace.write(stores / "auth.json", json.dumps({"auths": logins}).encode())


def build_buildah_env(work: BuildWork, stores: Path) -> Mapping[str, str]:
    """Return the environment of buildah."""
    folder = str(stores)
    return work.context.build_env(
        {
            "BUILDAH_ISOLATION": "chroot",
            "CONTAINERS_REGISTRIES_CONF": f"{folder}/registries.conf",
            "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf",
            "REGISTRY_AUTH_FILE": f"{folder}/auth.json",
            "XDG_RUNTIME_DIR": folder,
            "TMPDIR": folder,
        }
    )


def _list_logins(work: BuildWork, bases: list[str]) -> dict[str, Json]:
    """Return the logins for base images that the build runner holds, as buildah reads them."""
    auths: dict[str, Json] = {}
    for base in bases:
        try:
            name = parse_image(base)
        except WorkFailed:
            continue  # It has a build argument in it, so it is known only to buildah.
        charts = work.tools.charts
        login = make_login(charts.find_credential(work.context, f"{name.url}/{name.path}"))
        if login is not None:
            auths[name.host] = {"auth": login.write_basic().removeprefix("Basic ")}
    return auths
