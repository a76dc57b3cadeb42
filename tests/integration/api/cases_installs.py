"""The routes of installs of apps x every kind of caller."""

from typing import Any

from exclave.domain.drift_findings import ReportedFinding
from exclave.storage import drift_findings
from tests.integration.api.cases import Call, Make
from tests.integration.api.kit import Site
from tests.support.installs import make_app, make_app_install

_INS = "/v1/installs/{install}"
_FOUND = f"{_INS}/drift-findings"


async def make_fresh(site: Site) -> tuple[str, str]:
    """Make an app and an install of it, both of their own; answer both ids."""
    name = site.deps.ids.new("x").replace("_", "-")
    app = await make_app(site.deps, site.admin.user, name)
    made = await make_app_install(site.deps, site.admin.user, app, name, provision=False)
    return app, made.id


def on_install(path: str, **rest: Any) -> Make:
    """A call on a fresh install."""

    async def make(site: Site) -> Call:
        _, install = await make_fresh(site)
        return Call(path.replace("{install}", install), rest)

    return make


def on_finding(path: str, **body: str) -> Make:
    """A call on a fresh finding of a fresh install."""

    async def make(site: Site) -> Call:
        install, finding = await make_finding(site)
        rest = {"json": body} if body else {}
        return Call(f"/v1/installs/{install}/drift-findings/{finding}{path}", rest)

    return make


async def on_accepted_finding(site: Site) -> Call:
    """Withdraw the acceptance of a finding."""
    install, finding = await make_finding(site)
    org, accepted = site.admin.user.org, {"content": "a" * 64, "by": "x", "reason": "known"}
    await site.deps.db.write(
        lambda tx: drift_findings.accept(tx, org, install, finding, **accepted)
    )
    path = f"/v1/installs/{install}/drift-findings/{finding}/reopen"
    return Call(path, {"json": {"reason": "not any more"}})


async def make_finding(site: Site) -> tuple[str, str]:
    """Make a finding in a fresh install; answer both ids."""
    _, install = await make_fresh(site)
    finding, org = site.deps.ids.new("drf"), site.admin.user.org
    found = ReportedFinding("ConfigMap/shop/a", "data.b", "update", "1 → 2", "a" * 64)
    await site.deps.db.write(
        lambda tx: drift_findings.add_finding(tx, org, install, "sandbox", finding, found)
    )
    return install, finding


async def make_files(site: Site) -> Call:
    app, _ = await make_fresh(site)
    name = site.deps.ids.new("y").replace("_", "-")
    files = [{"name": name, "inputs": {"domain": "a.test"}}]
    return Call("/v1/install-configs", {"json": {"app": app, "installs": files}})


#                                                                   none garb expi revo view oper appr admi othe runr sibl oth build enrol
CONTROL = (
    ("DELETE", _INS, on_install(_INS),                              "401 401 401 401 403 204 403 204 404 401 401 401 401 401"),
    ("PUT", f"{_INS}/labels", on_install(f"{_INS}/labels", json={"labels": {"a": "b"}}),
                                                                    "401 401 401 401 403 200 403 200 404 401 401 401 401 401"),
    ("PUT", f"{_INS}/approve-all", on_install(f"{_INS}/approve-all", json={"approve_all": True}),
                                                                    "401 401 401 401 403 403 200 200 404 401 401 401 401 401"),
    ("PUT", f"{_INS}/managed-by", on_install(f"{_INS}/managed-by", json={"managed_by": "config"}),
                                                                    "401 401 401 401 403 200 403 200 404 401 401 401 401 401"),
    ("GET", f"{_INS}/inputs", on_install(f"{_INS}/inputs"),         "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", f"{_INS}/inputs", on_install(f"{_INS}/inputs", json={"values": {"replicas": "3"}}),
                                                                    "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
    ("POST", f"{_INS}/upgrade", on_install(f"{_INS}/upgrade", json={}),
                                                                    "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
    ("POST", f"{_INS}/workflows", on_install(f"{_INS}/workflows", json={"kind": "provision"}),
                                                                    "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
    ("GET", f"{_INS}/state", on_install(f"{_INS}/state"),           "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("GET", f"{_INS}/readme", on_install(f"{_INS}/readme"),         "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("GET", _FOUND, on_install(_FOUND),                             "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("GET", f"{_FOUND}/{{finding}}", on_finding(""),                "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", f"{_FOUND}/{{finding}}/accept", on_finding("/accept", content="a" * 64, reason="known"),
                                                                    "401 401 401 401 403 200 403 200 404 401 401 401 401 401"),
    ("POST", f"{_FOUND}/{{finding}}/reopen", on_accepted_finding,   "401 401 401 401 403 200 403 200 404 401 401 401 401 401"),
    ("POST", "/v1/install-configs", make_files,                     "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
)  # fmt: skip
