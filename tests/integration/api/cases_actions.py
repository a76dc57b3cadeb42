"""The routes of actions and runbooks x every kind of caller."""

from tests.integration.api.cases_installs import on_install

_ACTIONS = "/v1/installs/{install}/actions"
_BOOKS = "/v1/installs/{install}/runbooks"

#                                                                   none garb expi revo view oper appr admi othe runr sibl oth build enrol
CONTROL = (
    ("GET", _ACTIONS, on_install(_ACTIONS),                         "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("GET", f"{_ACTIONS}/runs", on_install(f"{_ACTIONS}/runs"),     "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", f"{_ACTIONS}/run", on_install(f"{_ACTIONS}/run", json={"action": "check"}),
                                                                    "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
    ("POST", f"{_ACTIONS}/run", on_install(f"{_ACTIONS}/run", json={"action": "check", "env": {"A": "b"}}),
                                                                    "401 401 401 401 403 403 403 202 404 401 401 401 401 401"),
    ("GET", _BOOKS, on_install(_BOOKS),                             "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", f"{_BOOKS}/run", on_install(f"{_BOOKS}/run", json={"runbook": "refresh"}),
                                                                    "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
)  # fmt: skip
