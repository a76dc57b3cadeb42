"""Every route of both APIs x every kind of caller: who may do what."""

from dataclasses import dataclass

from tests.integration.api import (
    cases_accounts,
    cases_actions,
    cases_apps,
    cases_builds,
    cases_installs,
    cases_stacks,
    cases_terraform,
)
from tests.integration.api.cases import (
    Make,
    at,
    make_ended_flow,
    make_ended_job,
    make_enrol_wish,
    make_enrolment_wish,
    make_failed_step,
    make_gated_script_wish,
    make_install_wish,
    make_log,
    make_org_wish,
    make_poll,
    make_registry_token_to_revoke,
    make_renewal,
    make_repository,
    make_result,
    make_runner_to_revoke,
    make_runner_to_show,
    make_running_job,
    make_script_wish,
    make_start,
    make_stopped_lane,
    make_token_to_confirm,
    make_token_to_revoke,
    make_token_wish,
    make_workflow_wish,
    on_flow,
    on_job,
)

CALLERS = (
    "none", "garbage", "expired", "revoked", "viewer", "operator", "approver", "admin",
    "other_admin", "runner", "sibling", "other_runner", "build_runner", "enrolment",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A route, how to call it, and the status for each of CALLERS."""

    app: str
    method: str
    route: str
    make: Make
    statuses: str

    @property
    def expected(self) -> dict[str, int]:
        return dict(zip(CALLERS, map(int, self.statuses.split()), strict=True))


_TOKEN = {"name": "ci", "account": "robot", "grants": [{"role": "viewer"}]}
_FLOW = "/v1/workflows/{workflow}"
_STEP = "/v1/workflows/{workflow}/steps/{step}"
_EXE = "/v1/executions/{execution}"

#                                                          none garb expi revo view oper appr admi othe runr sibl oth build enrol
CONTROL = (
    ("GET", "/healthz", at("/healthz"),                    "200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("GET", "/readyz" , at("/readyz") ,                    "200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("GET", "/metrics", at("/metrics"),                    "200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("GET", "/openapi.json", at("/openapi.json"),          "200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("GET", "/v1/whoami", at("/v1/whoami"),                "401 401 401 401 200 200 200 200 200 401 401 401 401 401"),
    ("GET", "/v1/org", at("/v1/org"),                      "401 401 401 401 200 200 200 200 200 401 401 401 401 401"),
    ("GET", "/v1/org/usage", at("/v1/org/usage"),                "401 401 401 401 200 200 200 200 200 401 401 401 401 401"),
    ("GET", "/v1/org/four-eyes", at("/v1/org/four-eyes"),  "401 401 401 401 200 200 200 200 200 401 401 401 401 401"),
    ("PUT", "/v1/org/four-eyes", at("/v1/org/four-eyes", json={"on": False}),
                                                           "401 401 401 401 403 403 403 200 200 401 401 401 401 401"),
    ("POST", "/v1/orgs", make_org_wish,                    "401 401 401 401 403 403 403 201 403 401 401 401 401 401"),
    ("GET", "/v1/tokens", at("/v1/tokens"),                "401 401 401 401 403 403 403 200 200 401 401 401 401 401"),
    ("POST", "/v1/tokens", at("/v1/tokens", json=_TOKEN),  "401 401 401 401 403 403 403 201 201 401 401 401 401 401"),
    ("PUT", "/v1/tokens/{token}/confirmed", make_token_to_confirm,
                                                           "401 401 401 401 403 403 403 204 404 401 401 401 401 401"),
    ("DELETE", "/v1/tokens/{token}", make_token_to_revoke, "401 401 401 401 403 403 403 200 404 401 401 401 401 401"),
    ("POST", "/v1/registry/tokens", at("/v1/registry/tokens", json={"repository": "apps/demo"}),
                                                           "401 401 401 401 403 201 403 201 201 401 401 401 401 401"),
    ("GET", "/v1/registry/tokens", at("/v1/registry/tokens"),
                                                           "401 401 401 401 403 403 403 200 200 401 401 401 401 401"),
    ("DELETE", "/v1/registry/tokens/{registry_token}", make_registry_token_to_revoke,
                                                           "401 401 401 401 403 403 403 204 404 401 401 401 401 401"),
    ("GET", "/v1/registry/repositories", at("/v1/registry/repositories"),
                                                           "401 401 401 401 200 200 200 200 200 401 401 401 401 401"),
    ("GET", "/v1/registry/tags", make_repository,          "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", "/v1/registry/gc", at("/v1/registry/gc", json={"dry_run": True}),
                                                           "401 401 401 401 403 403 403 200 200 401 401 401 401 401"),
    ("GET", "/v1/installs", at("/v1/installs"),            "401 401 401 401 200 200 200 200 200 401 401 401 401 401"),
    ("POST", "/v1/installs", make_install_wish,            "401 401 401 401 403 201 403 201 201 401 401 401 401 401"),
    ("GET", "/v1/installs/{install}", at("/v1/installs/{queue}"),
                                                           "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", "/v1/installs/{install}/lanes/{lane}/release", make_stopped_lane,
                                                           "401 401 401 401 403 200 403 200 404 401 401 401 401 401"),
    ("POST", "/v1/enrolments", make_enrolment_wish,        "401 401 401 401 403 201 403 201 404 401 401 401 401 401"),
    ("GET", "/v1/runners", at("/v1/runners"),              "401 401 401 401 200 200 200 200 200 401 401 401 401 401"),
    ("GET", "/v1/runners/{runner}", make_runner_to_show,   "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", "/v1/runners/{runner}/revoke", make_runner_to_revoke,
                                                           "401 401 401 401 403 200 403 200 404 401 401 401 401 401"),
    ("GET", "/v1/workflows", at("/v1/workflows"),          "401 401 401 401 200 200 200 200 200 401 401 401 401 401"),
    ("POST", "/v1/workflows", make_workflow_wish,          "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
    ("POST", "/v1/workflows", make_script_wish,            "401 401 401 401 403 403 403 202 404 401 401 401 401 401"),
    ("POST", "/v1/workflows", make_gated_script_wish,      "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
    ("GET", _FLOW, on_flow(_FLOW),                         "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("GET", f"{_FLOW}/stream", make_ended_flow,            "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", f"{_FLOW}/cancel", on_flow(f"{_FLOW}/cancel"),
                                                           "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
    ("PUT", f"{_FLOW}/approve-all", on_flow(f"{_FLOW}/approve-all", json={"approve_all": True}),
                                                           "401 401 401 401 403 403 200 200 404 401 401 401 401 401"),
    ("POST", f"{_STEP}/approve", on_flow(f"{_FLOW}/steps/gate/approve", json={"digest": "{digest}"}),
                                                           "401 401 401 401 403 403 202 202 404 401 401 401 401 401"),
    ("POST", f"{_STEP}/deny", on_flow(f"{_FLOW}/steps/gate/deny", json={"digest": "{digest}"}),
                                                           "401 401 401 401 403 403 202 202 404 401 401 401 401 401"),
    ("POST", f"{_STEP}/retry", make_failed_step,           "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
    ("POST", f"{_STEP}/skip", on_flow(f"{_FLOW}/steps/wait/skip", json={"reason": "not needed"}),
                                                           "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
    ("POST", f"{_STEP}/event", on_flow(f"{_FLOW}/steps/wait/event", json={"outputs": {"a": 1}}),
                                                           "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
    ("GET", "/v1/jobs", at("/v1/jobs"),                    "401 401 401 401 200 200 200 200 200 401 401 401 401 401"),
    ("GET", "/v1/jobs/{job}", on_job("/v1/jobs/{job}"),    "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", "/v1/jobs/{job}/cancel", on_job("/v1/jobs/{job}/cancel"),
                                                           "401 401 401 401 403 202 403 202 404 401 401 401 401 401"),
    ("POST", "/v1/jobs/{job}/declare-lost", make_running_job,
                                                           "401 401 401 401 403 200 403 200 404 401 401 401 401 401"),
    ("GET", "/v1/jobs/{job}/logs", on_job("/v1/jobs/{job}/logs"),
                                                           "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("GET", "/v1/jobs/{job}/logs/stream", make_ended_job,  "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("GET", "/v1/jobs/{job}/logs/search", on_job("/v1/jobs/{job}/logs/search", params={"q": "x"}),
                                                           "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("GET", "/v1/logs/search", at("/v1/logs/search?q=x&queue_id={queue}"),
                                                           "401 401 401 401 200 200 200 200 200 401 401 401 401 401"),
    ("GET", "/v1/audit", at("/v1/audit"),                  "401 401 401 401 403 403 403 200 200 401 401 401 401 401"),
)  # fmt: skip

#                                                          none garb expi revo view oper appr admi othe runr sibl oth build enrol
RUNNER = (
    ("GET", "/healthz", at("/healthz"),                    "200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("GET", "/readyz" , at("/readyz") ,                    "200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("GET", "/v1/keys", at("/v1/keys"),                    "200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("POST", "/v1/enrol", make_enrol_wish,                 "200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("POST", "/v1/token/nonce", at("/v1/token/nonce", json={"runner_id": "run_" + "0" * 26}),
                                                           "200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("POST", "/v1/token", make_token_wish,                 "200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("GET", "/v1/registry", at("/v1/registry"),            "401 401 401 401 401 401 401 401 401 200 200 200 200 401"),
    ("POST", "/v1/poll", make_poll,                        "401 401 401 401 401 401 401 401 401 200 200 200 200 401"),
    ("POST", "/v1/renew", make_renewal,                    "401 401 401 401 401 401 401 401 401 200 200 200 200 401"),
    ("POST", f"{_EXE}/start", make_start,                  "401 401 401 401 401 401 401 401 401 200 404 404 404 401"),
    ("POST", f"{_EXE}/log", make_log,                      "401 401 401 401 401 401 401 401 401 200 404 404 404 401"),
    ("POST", f"{_EXE}/result", make_result,                "401 401 401 401 401 401 401 401 401 200 404 404 404 401"),
)  # fmt: skip

ROWS = (
    *(
        Row("control", *row)
        for row in (
            *CONTROL,
            *cases_actions.CONTROL,
            *cases_apps.CONTROL,
            *cases_builds.CONTROL,
            *cases_installs.CONTROL,
            *cases_stacks.CONTROL,
            *cases_accounts.CONTROL,
            *cases_terraform.CONTROL,
        )
    ),
    *(
        Row("runner", *row)
        for row in (
            *RUNNER,
            *cases_accounts.RUNNER,
            *cases_apps.RUNNER,
            *cases_stacks.RUNNER,
            *cases_terraform.RUNNER,
        )
    ),
)
