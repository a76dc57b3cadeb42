"""The parts of a config version that are built, with their sources and cache keys."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from exclave.appconfig.model.formats import parse_duration
from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.shared import BUILD_TIMEOUT, HERE, Repos
from exclave.appconfig.stored.freezing import thaw
from exclave.base.digests import digest_json
from exclave.base.errors import InvalidInput
from exclave.control.job_specs.component_types import find_type
from exclave.domain.configs import Config, ConfigPart
from exclave.domain.identity import OrgId
from exclave.domain.installs import name_part
from exclave.domain.lanes import SANDBOX
from exclave.storage import configs
from exclave.storage.engine.database import Tx
from exclave.wire.builds import expand_repo
from exclave.wire.specs import BuildSource, GitSource, UploadedSource

FORMAT = 1
"""The format of artifacts: a new one makes every part be built again."""

_SCRIPTS = "action_source"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A part to build, its source, and the key under which an equal build is reused."""

    part: str
    type: str
    source: BuildSource
    key: str
    timeout_s: float = 300.0


def list_wanted(tx: Tx, org: OrgId, config: Config) -> Sequence[Wanted]:
    """List the parts of a version that are built from a source."""
    return [
        _make(config, name, type_, source, timeout)
        for section in ("sandbox", "component", "action")
        for part in configs.list_parts(tx, org, config.id, section)
        for name, type_, source, timeout in _find_sources(part)
    ]


def find_target(wanted: Sequence[Wanted], text: str) -> Wanted:
    """Return the part that a person names; `db` is short for `component:db`."""
    for name in (text, f"component:{text}"):
        found = next((one for one in wanted if one.part == name), None)
        if found is not None:
            return found
    known = ", ".join(one.part.removeprefix("component:") for one in wanted)
    raise InvalidInput(
        f"the app has no part `{text}` that is built", hint=f"Its parts: {known or 'none'}."
    )


def _find_sources(part: ConfigPart) -> Iterator[tuple[str, str, Repos, str]]:
    """Yield what is built of a part: its name, the type of the artifact, the source, a timeout."""
    match part.section:
        case "sandbox":
            type_, sandbox = find_type("", part.value), thaw(Sandbox, part.value)
            if type_ is not None and _has_repo(sandbox):
                yield SANDBOX, type_.artifact, sandbox, BUILD_TIMEOUT
        case "component":
            type_ = find_type(part.name, part.value)
            if type_ is not None:
                component = thaw(type_.definition, part.value)
                if _has_repo(component):
                    yield name_part(part.name), type_.artifact, component, component.build_timeout
        case _:
            for step in thaw(Action, part.value).steps:
                if _has_repo(step):
                    yield f"action:{part.name}:{step.name}", _SCRIPTS, step, BUILD_TIMEOUT


def _has_repo(source: Repos) -> bool:
    return source.public_repo is not None or source.connected_repo is not None


def _make(config: Config, part: str, type_: str, source: Repos, timeout: str) -> Wanted:
    build_source, identity = _make_source(config, source)
    key = digest_json({"format": FORMAT, "type": type_, "source": identity})
    timeout_s = parse_duration(timeout) or parse_duration(BUILD_TIMEOUT) or 0.0
    return Wanted(part, type_, build_source, key, timeout_s)


def _make_source(config: Config, source: Repos) -> tuple[BuildSource, Mapping[str, str]]:
    """Return the source of a build, and the values that tell it apart from others."""
    repo = source.connected_repo or source.public_repo
    if repo is None:
        raise ValueError("a part without a repository is not built")
    directory = posixpath.normpath(repo.directory or ".")
    if repo.repo == HERE:
        # A folder that was not there when the app was synced: the build will say so.
        content = config.outline.get("folders", {}).get(directory, config.archive_digest)
        uploaded = UploadedSource(
            config_id=config.id, archive_digest=config.archive_digest, directory=directory
        )
        return uploaded, {"folder": content}
    url, ref = expand_repo(repo.repo), repo.branch or "HEAD"
    connected = source.connected_repo is not None
    git = GitSource(url=url, ref=ref, directory=directory, connected=connected)
    return git, {"url": url, "ref": ref, "directory": directory}
