"""Writes a bill of materials as an SPDX 2.3 document in JSON."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from exclave.base.json_values import JsonObject
from exclave.runner.builds.sbom.packages import Package

_ROOT = "SPDXRef-artifact"


@dataclass(frozen=True, slots=True)
class Subject:
    """The artifact that a document describes."""

    name: str
    digest: str
    purpose: str
    """`CONTAINER` or `APPLICATION`."""


def make_spdx(
    subject: Subject,
    packages: Sequence[Package],
    *,
    notes: Sequence[str],
    version: str,
    created_at: datetime,
) -> JsonObject:
    """Return the document; notes say what it lacks."""
    algorithm, _, value = subject.digest.partition(":")
    root: JsonObject = {
        "SPDXID": _ROOT,
        "name": subject.name,
        "versionInfo": subject.digest,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": subject.purpose,
        "checksums": [{"algorithm": algorithm.upper(), "checksumValue": value}],
    }
    listed = [_describe(package) for package in packages]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": subject.name,
        "documentNamespace": f"https://exclave.dev/spdx/{value}",
        "creationInfo": {
            "created": created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: exclave-{version}"],
        },
        **({"comment": "; ".join(notes)} if notes else {}),
        "packages": [root, *listed],
        "relationships": [
            _relate("SPDXRef-DOCUMENT", "DESCRIBES", _ROOT),
            *(_relate(_ROOT, "CONTAINS", str(package["SPDXID"])) for package in listed),
        ],
    }


def _describe(package: Package) -> JsonObject:
    name = f"{package.namespace}/{package.name}" if package.type == "npm" else package.name
    return {
        "SPDXID": f"SPDXRef-{hashlib.sha256(package.url.encode()).hexdigest()[:20]}",
        "name": name.lstrip("/"),
        "versionInfo": package.version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": package.url,
            }
        ],
    }


def _relate(element: str, relation: str, other: str) -> JsonObject:
    return {
        "spdxElementId": element,
        "relationshipType": relation,
        "relatedSpdxElement": other,
    }
