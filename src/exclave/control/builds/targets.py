"""The parts of a config version that are built, with their sources and cache keys."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exclave.appconfig.model.formats import parse_duration
from exclave.appconfig.model.kinds.shared import BUILD_TIMEOUT, HERE
from exclave.appconfig.stored.freezing import thaw
from exclave.base.digests import digest_json
from exclave.base.errors import InvalidInput
from exclave.control.job_specs.component_types import find_type
from exclave.domain.identity import OrgId
from exclave.domain.installs import name_part
from exclave.domain.lanes import SANDBOX
from exclave.storage import configs
from exclave.storage.engine.database import AnyRow, Tx
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


def list_wanted(tx: Tx, org: OrgId, config: AnyRow) -> Sequence[Wanted]:
    """List the parts of a version that are built from a source."""
    return [
        _make(config, part, type_, repos, timeout)
        for section in ("sandbox", "component", "action")
        for row in configs.list_parts(tx, org, config.id, section)
        for part, type_, repos, timeout in _find_sources(section, row)
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


def _find_sources(section: str, row: AnyRow) -> Iterator[tuple[str, str, Mapping[str, Any], str]]:
    """Yield the parts of a row that are built: name, artifact type, source, timeout."""
    value: Mapping[str, Any] = row.value
    match section:
        case "sandbox":
            if _has_repo(value) and (type_ := find_type("", value)) is not None:
                yield SANDBOX, type_.artifact, value, BUILD_TIMEOUT
        case "component":
            if _has_repo(value) and (type_ := find_type(row.name, value)) is not None:
                timeout = thaw(type_.definition, value).build_timeout
                yield name_part(row.name), type_.artifact, value, timeout
        case _:
            for step in value.get("steps", ()):
                if _has_repo(step):
                    yield f"action:{row.name}:{step['name']}", _SCRIPTS, step, BUILD_TIMEOUT


def _has_repo(value: Mapping[str, Any]) -> bool:
    return "public_repo" in value or "connected_repo" in value


def _make(config: AnyRow, part: str, type_: str, repos: Mapping[str, Any], timeout: str) -> Wanted:
    connected = "connected_repo" in repos
    repo: Mapping[str, Any] = repos["connected_repo"] if connected else repos["public_repo"]
    directory = posixpath.normpath(repo.get("directory") or ".")
    source: BuildSource
    if repo["repo"] == HERE:
        folders: Mapping[str, str] = config.outline.get("folders", {})
        # A folder that was not there when the app was synced: the build will say so.
        content = folders.get(directory, config.archive_digest)
        source = UploadedSource(
            config_id=config.id, archive_digest=config.archive_digest, directory=directory
        )
        identity = {"folder": content}
    else:
        url, ref = expand_repo(repo["repo"]), str(repo.get("branch", "HEAD"))
        source = GitSource(url=url, ref=ref, directory=directory, connected=connected)
        identity = {"url": url, "ref": ref, "directory": directory}
    key = digest_json({"format": FORMAT, "type": type_, "source": identity})
    timeout_s = parse_duration(timeout) or parse_duration(BUILD_TIMEOUT) or 0.0
    return Wanted(part, type_, source, key, timeout_s)
