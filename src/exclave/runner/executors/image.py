"""Executor of `image` jobs: copies an image into the registry of the install."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.json_values import JsonObject, parse_object, text_or_empty
from exclave.client.oci.auth import Login
from exclave.client.oci.repository import OciRepository
from exclave.client.problems import RemoteProblem
from exclave.client.transport import Link
from exclave.runner.control_plane.registry_access import OpenRegistry
from exclave.runner.images.cloud_logins import CloudLogins, find_role
from exclave.runner.images.copy import ImageCopy
from exclave.runner.images.graph import ImageNode, read_graph
from exclave.runner.images.references import ImageName, parse_image
from exclave.runner.images.registries import explain_refusal, open_image_repository
from exclave.runner.images.stack_registry import (
    PASSWORD,
    USERNAME,
    StackRegistry,
    read_registry_login,
)
from exclave.runner.jobs.context import JobContext, JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import Executor, JobRun, StopRequest, require_spec, run_guarded
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.store import SecretStore
from exclave.wire.images import ImageSpec
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome

_GRACE_S: Final = 5.0
_MOST_CONFIG: Final = 4 << 20
_TAG_DIGITS: Final = 40
_KEEPS_TAGS: Final = frozenset(
    {httpx.codes.BAD_REQUEST, httpx.codes.METHOD_NOT_ALLOWED, httpx.codes.FORBIDDEN}
)
"""How registries answer that do not let tags be deleted."""


@dataclass(frozen=True, slots=True)
class ImageKit:
    """What copies of images need of the runner."""

    open_registry: OpenRegistry
    """Opens the registry that has the vendor's artifacts."""
    secrets: SecretStore
    read_registry: Callable[[], StackRegistry | None]
    """Returns the registry that the customer named for the Stack."""
    link: Link
    """Proxy and certificates; its URL is not used."""
    clock: Clock
    clouds: CloudLogins = field(default_factory=CloudLogins)
    roles: Mapping[str, str] = field(default_factory=dict)
    """ARNs, accounts and client ids by the name of the role, from the Stack's own outputs."""
    keep_free_bytes: int = KEEP_FREE_BYTES


@dataclass(frozen=True, slots=True)
class _Target:
    """The repository of the install that an image goes to."""

    name: ImageName
    url: str
    login: Login | None
    has_pull_secret: bool = False


class ImageExecutor(Executor):
    """The executor of `image` jobs."""

    def __init__(self, kit: ImageKit) -> None:
        self._kit = kit

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Copy the image, or remove its tag; return the outcome."""
        return await run_guarded(job, log, self._run(job, log, stop))

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        spec = require_spec(job, ImageSpec)
        context = open_context(
            job,
            log,
            stop,
            clock=self._kit.clock,
            children=ChildSettings(),
            limits=JobLimits(spec.timeout_s, _GRACE_S, self._kit.keep_free_bytes),
        )
        work = self._remove(context, spec) if spec.destroy else self._copy(context, spec)
        outputs = await context.guard(work, name="the copy of the image")
        return Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, outputs=outputs)

    async def _copy(self, context: JobContext, spec: ImageSpec) -> dict[str, JsonObject]:
        target = await self._find_target(context, spec)
        artifact = spec.artifact
        try:
            async with self._kit.open_registry(context.job.uplink) as registry:
                source = registry.open_repository(artifact.repository)
                image = await read_graph(source, artifact.digest, platforms=spec.platforms)
                platforms = image.platforms or await _read_platform(source, image, context)
                if target is not None:
                    await self._transfer(context, spec, source, image, target)
        except Problem as problem:
            raise explain_refusal(
                problem, f"`{artifact.repository}@{artifact.digest}`"
            ) from problem
        name = parse_image(spec.source) if target is None else target.name
        if target is None:
            context.log.system(
                f"not copied, because the install has no registry: {name.repository}@{image.digest}"
            )
        return {
            "image": {
                "repository": name.repository,
                "tag": _name_tag(spec, image),
                "digest": image.digest,
                "ref": f"{name.repository}@{image.digest}",
                "media_type": image.media_type,
                "size": image.size,
                "platforms": list(platforms),
                "pull_secret": target is not None and target.has_pull_secret,
                "source": spec.source,
            }
        }

    async def _transfer(
        self,
        context: JobContext,
        spec: ImageSpec,
        source: OciRepository,
        image: ImageNode,
        target: _Target,
    ) -> None:
        tag = _name_tag(spec, image)
        context.log.system(f"▸ copy to {target.name.repository}:{tag}")
        async with self._open(context, target) as repository:
            try:
                await ImageCopy(source, repository, context.log.system, context.clock).run(
                    image, tag
                )
            except RemoteProblem as problem:
                advice = f"Check the login: the Stack's secrets `{USERNAME}` and `{PASSWORD}`"
                where = f"`{target.name.repository}`"
                raise explain_refusal(problem, where, advice=advice) from problem

    async def _remove(self, context: JobContext, spec: ImageSpec) -> dict[str, JsonObject]:
        """Delete the tag; the content goes when the registry collects its garbage."""
        target = await self._find_target(context, spec)
        if target is None:
            return {}
        async with self._open(context, target) as repository:
            try:
                await repository.delete_tag(spec.tag)
            except RemoteProblem as problem:
                if problem.status not in _KEEPS_TAGS:
                    raise explain_refusal(problem, f"`{target.name.repository}`") from problem
                context.log.system(f"the tag {spec.tag} stays: {problem.message}")
        return {}

    def _open(
        self, context: JobContext, target: _Target
    ) -> AbstractAsyncContextManager[OciRepository]:
        return open_image_repository(
            self._kit.link,
            target.name,
            target.login,
            lambda token: context.log.hide([token]),
            url=target.url,
        )

    async def _find_target(self, context: JobContext, spec: ImageSpec) -> _Target | None:
        """Return the install's repository; None if it has none and a public image needs none."""
        wanted = spec.target
        if wanted.type != "stack":
            name = parse_image(wanted.repository)
            identity = context.job.identity
            role = find_role(self._kit.roles, wanted.role) if identity is None else ""
            login = await self._kit.clouds.log_in(
                wanted.type,
                name,
                self._kit.clock,
                lambda token: context.log.hide([token]),
                region=wanted.region,
                role=role,
                identity=identity,
            )
            return _Target(name, name.url, login)
        registry = self._kit.read_registry()
        if registry is None:
            if spec.source or spec.destroy:
                return None
            raise WorkFailed(
                Reason.IMAGE_UNAVAILABLE,
                "the install has no registry for images that the vendor built: run the Stack again"
                " with `--registry URL`",
            )
        own = await read_registry_login(self._kit.secrets)
        if own is not None:
            context.log.hide([own.password])
        name = registry.name_image(wanted.folder)
        return _Target(name, registry.url, own, has_pull_secret=own is not None)


def _name_tag(spec: ImageSpec, image: ImageNode) -> str:
    """Return the tag: that of the job, unless only some platforms were copied."""
    if image.digest == spec.artifact.digest:
        return spec.tag
    return "x" + image.digest.partition(":")[2][:_TAG_DIGITS]


async def _read_platform(source: OciRepository, image: ImageNode, context: JobContext) -> list[str]:
    """Return the platform of an image that is not an index, from its config."""
    config = image.blobs[0]
    if config.size > _MOST_CONFIG or "image" not in config.mediaType:
        return []
    file: Path = context.job.folder / "config.json"
    await source.pull_blob(config, file)
    try:
        data = await asyncio.to_thread(file.read_bytes)
        facts = parse_object(data, "the config of the image")
    except ValueError:
        return []
    parts = (text_or_empty(facts.get(key)) for key in ("os", "architecture", "variant"))
    return ["/".join(part for part in parts if part)]
