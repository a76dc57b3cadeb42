"""The verbs of `exclave builds`."""

from typing import Any

from exclave.base.digests import canonical_json, digest_bytes
from exclave.client.oci.documents import EMPTY, EMPTY_BYTES, INDEX, MANIFEST
from exclave.wire.builds import SBOM_TYPE
from tests.unit.cli import samples
from tests.unit.cli.fake_control import AT, DIGEST, JOB, WFL, make_id
from tests.unit.cli.verbs import LOG, Verb

BUILD = make_id("bui")
COMMIT = "c" * 40
_ERROR = "component `db`, step check: main.tf:3: not UTF-8"


def build(**more: Any) -> dict[str, Any]:
    return {
        "id": BUILD,
        "app_id": make_id("app"),
        "app": "demo",
        "part": "component:db",
        "state": "succeeded",
        "repository": "apps/demo",
        "digest": DIGEST,
        "commit": COMMIT,
        "source": {
            "type": "git",
            "url": "https://github.com/acme/db",
            "ref": "main",
            "directory": ".",
        },
        "size": 10240,
        "provenance": DIGEST,
        "error": "",
        "workflow_id": WFL,
        "job_id": JOB,
        "configs": [1, 2],
        "created_at": AT,
        "created_by": "ada",
        "finished_at": AT,
    } | more


_TOKEN = make_id("rgt")
_REPOSITORY = "org/apps/demo"
_PLACE = f"/v2/{_REPOSITORY}"
_SBOM = b'{"spdxVersion": "SPDX-2.3"}'
_MANIFEST = canonical_json(
    {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": EMPTY, "digest": digest_bytes(EMPTY_BYTES), "size": 2},
        "layers": [
            {"mediaType": SBOM_TYPE, "digest": digest_bytes(_SBOM), "size": len(_SBOM)},
        ],
    }
)
_REFERRERS = canonical_json(
    {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [
            {
                "mediaType": MANIFEST,
                "digest": digest_bytes(_MANIFEST),
                "size": len(_MANIFEST),
                "artifactType": SBOM_TYPE,
            }
        ],
    }
)

BUILD_VERBS: dict[str, Verb] = {
    "builds list": Verb(
        "", {"GET /v1/builds": samples.page(build())}, "component:db  succeeded  1, 2"
    ),
    "builds get": Verb(
        BUILD, {f"GET /v1/builds/{BUILD}": build(state="failed", error=_ERROR)}, _ERROR
    ),
    "builds sbom": Verb(
        BUILD,
        {
            f"GET /v1/builds/{BUILD}": build(),
            "POST /v1/registry/tokens": samples.registry_token(id=_TOKEN, repository=_REPOSITORY),
            f"GET {_PLACE}/referrers/{DIGEST}": _REFERRERS,
            f"GET {_PLACE}/manifests/{digest_bytes(_MANIFEST)}": _MANIFEST,
            f"GET {_PLACE}/blobs/{digest_bytes(_SBOM)}": _SBOM,
            f"DELETE /v1/registry/tokens/{_TOKEN}": None,
        },
        '"spdxVersion": "SPDX-2.3"',
    ),
    "builds logs": Verb(
        f"{BUILD} --follow",
        {f"GET /v1/builds/{BUILD}": build(), f"GET /v1/jobs/{JOB}/logs/stream": LOG},
        "hello\n",
        lines=True,
    ),
    "builds create": Verb(
        f"demo db --commit {COMMIT}",
        {"POST /v1/builds": build(state="running")},
        BUILD,
        "exclave builds logs",
        {"app": "demo", "part": "db", "commit": COMMIT},
    ),
}
