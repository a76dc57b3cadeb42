"""The layer cache of one build: which repository it is, and when it is used and kept."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from exclave.base.digests import digest_bytes
from exclave.base.image_names import CACHE_FOLDER
from exclave.base.secrets import Secret
from exclave.runner.builds.images.build_secrets import find_leak
from exclave.runner.builds.images.layer_proxy import LayerProxy
from exclave.runner.builds.images.layer_store import LayerStore
from exclave.runner.builds.recipe import BuildWork
from exclave.wire.specs import BuildSpec, DockerOptions

_FOLDER: Final = "layers"
_PART: Final = re.compile(r"[a-z0-9]+((_|__|-+)[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class LayerCache:
    """The layers that a build may use, and the way to them for buildah."""

    store: LayerStore
    proxy: LayerProxy

    def drop(self) -> None:
        """Forget what the build has added."""
        self.store.drop()


def name_cache(spec: BuildSpec, platform: str = "") -> str:
    """Return the repository with the layers of one component, in the org's registry.

    buildah does not count the platform when it looks for a layer, so each has a repository.
    """
    kind, _, name = spec.part.partition(":")
    parts = (CACHE_FOLDER, spec.repository, _encode(name or kind), platform.replace("/", "-"))
    return "/".join(part for part in parts if part)


@asynccontextmanager
async def open_layer_cache(
    work: BuildWork, options: DockerOptions
) -> AsyncIterator[LayerCache | None]:
    """Open the cache of the component that is built; None where layers are not kept.

    A build for several platforms would mix layers of these.
    """
    if not work.tools.caches_layers or len(options.platforms) > 1:
        yield None
        return
    folder = work.context.job.folder / _FOLDER
    await asyncio.to_thread(folder.mkdir, mode=0o700)
    repository = work.registry.open_repository(name_cache(work.spec, *options.platforms))
    store = LayerStore(repository, folder, work.context.log.system)
    proxy = LayerProxy(store, work.tools.randomness)
    work.context.log.hide([proxy.login.password, Secret(proxy.login.write_basic())])
    async with proxy:
        yield LayerCache(store, proxy)


async def save_layers(work: BuildWork, cache: LayerCache, secrets: list[str]) -> None:
    """Keep the layers of a build that succeeded, unless one contains a secret of the build."""
    leaked = await find_leak(work, cache.store.folder, secrets)
    if leaked:
        work.context.log.system(f"layers are not kept: one contains the secret `{leaked}`")
        return
    await cache.store.save()


def _encode(name: str) -> str:
    """Return a name as one part of that of a repository; no two names have the same."""
    if _PART.fullmatch(name):
        return name
    return f"x.{digest_bytes(name.encode()).removeprefix('sha256:')[:32]}"
