"""The routes of attestation and of the accounts that installs are pinned to x every caller."""

from typing import Any

from sqlalchemy import update

from exclave.domain.stacks import Cloud
from exclave.storage.tables.installs import app_installs
from tests.integration.api.cases import Call, Make, at
from tests.integration.api.cases_installs import make_fresh
from tests.integration.api.kit import Site

_INS = "/v1/installs/{install}"
_RESET = {"reason": "moved", "region": "eu-west-1", "account": "123456789012"}
_KEY = "A" * 43
_CHALLENGE = {"install_id": "ins_" + "0" * 26, "cloud": "aws", "public_key": _KEY}
_ENROL = {
    "install_id": "ins_" + "0" * 26,
    "nonce": "a-" + "0" * 56,
    "public_key": _KEY,
    "name": "machine",
    "version": "1",
    "protocol": "1.0",
    "capabilities": [],
    "evidence": {"cloud": "gcp", "token": "a.b.c"},
}


def on_cloud(path: str, **rest: Any) -> Make:
    """A call on a fresh install that is in a cloud."""

    async def make(site: Site) -> Call:
        _, install = await make_fresh(site)
        moved = update(app_installs).where(app_installs.c.install_id == install)
        place = {"target": Cloud.AWS, "region": "eu-west-1", "account": "123456789012"}
        await site.deps.db.write(lambda tx: tx.run(moved.values(place)))
        return Call(path.replace("{install}", install), rest)

    return make


#                                                                   none garb expi revo view oper appr admi othe runr sibl oth build enrol
CONTROL = (
    ("GET", f"{_INS}/account", on_cloud(f"{_INS}/account"),         "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", f"{_INS}/account/confirm",
     on_cloud(f"{_INS}/account/confirm", json={"account": "123456789012"}),
                                                                    "401 401 401 401 403 200 403 200 404 401 401 401 401 401"),
    ("POST", f"{_INS}/account/reset", on_cloud(f"{_INS}/account/reset", json=_RESET),
                                                                    "401 401 401 401 403 200 403 200 404 401 401 401 401 401"),
)  # fmt: skip
RUNNER = (
    # The control plane of these tests allows no cloud: everybody is told so.
    ("POST", "/v1/attest/challenge", at("/v1/attest/challenge", json=_CHALLENGE),
                                                                    "503 503 503 503 503 503 503 503 503 503 503 503 503 503"),
    ("POST", "/v1/attest/enrol", at("/v1/attest/enrol", json=_ENROL),
                                                                    "503 503 503 503 503 503 503 503 503 503 503 503 503 503"),
)  # fmt: skip
