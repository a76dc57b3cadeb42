"""The files of a cloud's Stack: rendered once per version in a worker, stored, and signed."""

import hashlib
from dataclasses import dataclass

from exclave import __version__
from exclave.base.digests import canonical_json
from exclave.base.errors import Conflict, NotFound
from exclave.base.json_values import JsonObject
from exclave.control.deps import Deps
from exclave.control.stack_versions.stored_models import read_model
from exclave.control.stacks.program_archives import load_pins
from exclave.control.workers.render_stack import (
    Advice,
    ServedFile,
    compare_stacks,
    render_stack,
    write_advice,
)
from exclave.domain.identity import OrgId
from exclave.domain.stacks import StackVersion, StoredFile
from exclave.stacks.base import SigningKey, StackAddress
from exclave.stacks.findings import Finding, find_errors
from exclave.stacks.model import StackModel
from exclave.stacks.reporting.differences import Change
from exclave.storage import configs, stacks
from exclave.storage.engine.database import Tx

_RENDER_S = 5.0
MOST_BYTES = 8 << 20
"""Of all files of a version together."""
_SIGNED = "exclave-stack-file+jws"


class StackRefused(Conflict):
    """The app's Stack is one that the cloud, or this version, would refuse."""

    code = "stack_refused"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A version with its files, and the model that they were made from."""

    version: StackVersion
    model: StackModel
    files: tuple[StoredFile, ...]

    def find_file(self, name: str) -> StoredFile | None:
        """Return the file of this name, or None."""
        return next((file for file in self.files if file.name == name), None)


async def prepare_files(deps: Deps, org: OrgId, version: StackVersion) -> Prepared:
    """Return the files of a version; they are rendered the first time that somebody asks."""
    stored = await deps.db.read(lambda tx: stacks.find_model(tx, org, version.id))
    if stored is None:
        raise NotFound("this version of the Stack has no files")
    keys = await deps.db.read(lambda tx: _list_keys(tx, deps))
    if version.files is not None:
        files = tuple(StoredFile(**file) for file in version.files)  # type: ignore[arg-type]
        return Prepared(version, read_model(stored, keys), files)
    model = read_model(stored, keys, await load_pins(deps))
    parts = await deps.db.read(lambda tx: _list_definitions(tx, org, version.config_id))
    rendered, findings = await deps.workers.run(org, render_stack, model, parts, seconds=_RENDER_S)
    refuse_errors(findings)
    return await _store(deps, org, version, model, rendered)


def refuse_errors(findings: tuple[Finding, ...]) -> None:
    """Raise `StackRefused` if a finding is an error; it names the first, and counts the others."""
    errors = find_errors(findings)
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        first = errors[0]
        place = " ".join(filter(None, (first.section, first.name)))
        raise StackRefused(
            f"the app has no valid Stack: {place + ': ' if place else ''}{first.message}{more}",
            hint=first.hint or "Correct the app and sync it again.",
            errors=[error.message for error in errors][:20],
        )


async def read_file(deps: Deps, file: StoredFile) -> bytes:
    """Return the bytes of a file, which are those that were rendered."""
    data = await deps.blobs.get(file.blob)
    if _hash(data) != file.sha256:
        raise NotFound("the content is not what was stored", hint="Ask the vendor.")
    return data


async def advise_customer(
    deps: Deps, org: OrgId, ready: Prepared, address: StackAddress | None, before: StackModel | None
) -> Advice:
    """Return how the customer runs a version, and what changes for them."""
    arguments = (ready.model, address, before)
    return await deps.workers.run(org, write_advice, *arguments, seconds=_RENDER_S)


async def compare_versions(
    deps: Deps, org: OrgId, before: StackModel, after: StackModel
) -> tuple[Change, ...]:
    """Return what changes from one version to another."""
    return await deps.workers.run(org, compare_stacks, before, after, seconds=_RENDER_S)


async def sign_file(deps: Deps, install: str, version: int, file: StoredFile) -> str:
    """Return the detached signature of a file: a JWS whose payload the reader writes themselves.

    The payload is canonical JSON of the file's name, its SHA-256, the install and the version.
    """
    payload = canonical_json(
        {"file": file.name, "install": install, "sha256": file.sha256, "version": version}
    )
    return await deps.db.read(lambda tx: deps.keys.sign_detached(tx, _SIGNED, payload))


async def find_running_model(deps: Deps, org: OrgId, install: str) -> StackModel | None:
    """Return the model of the version that the customer runs, or None."""

    def find(tx: Tx) -> StackModel | None:
        run = stacks.find_run(tx, org, install)
        stored = None if run is None else stacks.find_model(tx, org, run.id)
        return None if stored is None else read_model(stored)

    return await deps.db.read(find)


async def _store(
    deps: Deps, org: OrgId, version: StackVersion, model: StackModel, rendered: list[ServedFile]
) -> Prepared:
    """Store rendered files: first the blobs, then their list, unless another server was first."""
    if sum(len(file.data) for file in rendered) > MOST_BYTES:
        raise StackRefused(f"the files of the Stack have more than {MOST_BYTES} bytes")
    files = tuple(_describe(org, version, file) for file in rendered)
    for blob, data in {f.blob: r.data for f, r in zip(files, rendered, strict=True)}.items():
        await deps.blobs.put(blob, data)

    def store(tx: Tx) -> StackVersion | None:
        stacks.store_files(tx, org, version.id, __version__, files)
        return stacks.find_by_id(tx, org, version.id)

    stored = await deps.db.write(store)
    if stored is None or stored.files is None:
        raise NotFound("this version of the Stack is gone")
    kept = tuple(StoredFile(**file) for file in stored.files)  # type: ignore[arg-type]
    return Prepared(stored, model, kept)


def _describe(org: OrgId, version: StackVersion, file: ServedFile) -> StoredFile:
    digest = _hash(file.data)
    blob = f"stacks/{org}/{version.id}/{digest}"
    return StoredFile(file.name, file.media_type, digest, len(file.data), blob, file.form)


def _list_definitions(tx: Tx, org: OrgId, config: str) -> list[JsonObject]:
    """Return the sandbox and components of a config as they are stored."""
    parts = configs.list_all_parts(tx, org, config)
    return [part.value for part in parts if part.section in {"sandbox", "component"}]


def _list_keys(tx: Tx, deps: Deps) -> tuple[SigningKey, ...]:
    return tuple(
        SigningKey(key.kid, key.public_key, key.signed_by, key.signature)
        for key in deps.keys.list_public(tx)
    )


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
