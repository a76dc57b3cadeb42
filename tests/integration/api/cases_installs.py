"""The routes of installs of apps x every kind of caller."""

from typing import Any

from tests.integration.api.cases import Call, Make
from tests.integration.api.kit import Site
from tests.support.installs import make_app, make_app_install

_INS = "/v1/installs/{install}"


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
    ("POST", "/v1/install-configs", make_files,                     "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
)  # fmt: skip
