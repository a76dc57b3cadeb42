"""The provenance of an artifact: an in-toto statement, signed by the runner that built it."""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.base.digests import canonical_json
from exclave.base.json_values import JsonObject
from exclave.runner.builds.recipe import BuiltArtifact
from exclave.wire.envelope import decode_bytes, public_text
from exclave.wire.images import ImageSource
from exclave.wire.runner import Dispatch
from exclave.wire.specs import BuildSource, BuildSpec, ChartSource, GitSource, UploadedSource

ARTIFACT_TYPE = "application/vnd.in-toto+json"
LAYER_TYPE = "application/vnd.dsse.envelope.v1+json"
PREDICATE = "https://slsa.dev/provenance/v1"
_STATEMENT = "https://in-toto.io/Statement/v1"
_BUILD = "urn:exclave:build:v1"


@dataclass(frozen=True, slots=True)
class BuildTimes:
    """When a build ran."""

    started_at: datetime
    finished_at: datetime


def make_statement(
    dispatch: Dispatch, spec: BuildSpec, built: BuiltArtifact, times: BuildTimes, version: str
) -> Mapping[str, object]:
    """Return the provenance statement of an artifact: builder, source and all input digests."""
    source = spec.source.model_dump(mode="json", exclude={"connected", "commit"})
    return {
        "_type": _STATEMENT,
        "subject": [{"name": spec.repository, "digest": _name(built.pushed.digest)}],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD,
                "externalParameters": {"part": spec.part, "type": spec.type, "source": source},
                "internalParameters": {"build": spec.build_id, "org": dispatch.org_id},
                "resolvedDependencies": [
                    _describe_source(spec.source, built.commit),
                    *_describe_layer(built.layer),
                    *built.materials,
                ],
            },
            "runDetails": {
                "builder": {
                    "id": f"urn:exclave:runner:{dispatch.runner_id}",
                    "version": {"exclave": version},
                },
                "metadata": {
                    "invocationId": dispatch.execution_id,
                    "startedOn": _write_time(times.started_at),
                    "finishedOn": _write_time(times.finished_at),
                },
            },
        },
    }


def sign_statement(statement: Mapping[str, object], key: Ed25519PrivateKey) -> bytes:
    """Wrap a statement in a DSSE envelope."""
    payload = canonical_json(statement)
    public = decode_bytes(public_text(key))
    envelope = {
        "payloadType": ARTIFACT_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [
            {
                "keyid": f"sha256:{hashlib.sha256(public).hexdigest()}",
                "sig": base64.b64encode(key.sign(encode_for_signing(payload))).decode(),
            }
        ],
    }
    return json.dumps(envelope, sort_keys=True).encode()


def encode_for_signing(payload: bytes) -> bytes:
    """Return the pre-authentication encoding of DSSE: type and payload with their lengths."""
    kind = ARTIFACT_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _describe_source(source: BuildSource, commit: str) -> Mapping[str, object]:
    match source:
        case GitSource():
            return {"uri": f"git+{source.url}@{source.ref}", "digest": {"gitCommit": commit}}
        case ChartSource():
            return {"uri": f"{source.url}#{source.chart}", "name": source.version or "newest"}
        case ImageSource():
            return {"uri": f"docker://{source.image}", "name": source.tag or source.update_policy}
        case UploadedSource():
            uri = f"urn:exclave:config:{source.config_id}"
            return {"uri": uri, "digest": _name(source.archive_digest)}


def _describe_layer(layer: str) -> list[JsonObject]:
    return [{"name": "layer", "digest": _name(layer)}] if layer else []


def _name(digest: str) -> Mapping[str, str]:
    algorithm, _, value = digest.partition(":")
    return {algorithm: value}


def _write_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
