"""Every verb once: how it is called, what the server answers, and a line of what it shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.unit.cli import samples
from tests.unit.cli.fake_control import (
    DIGEST,
    INS,
    JOB,
    ORG,
    QUE,
    RGT,
    RUN,
    TOK,
    TOKEN,
    URL,
    WFL,
    FakeControl,
    event,
)

STEPS = f"/v1/workflows/{WFL}/steps"


@dataclass(frozen=True)
class Verb:
    """One row: `answers` maps "METHOD /path" to a body, or to bytes of a stream."""

    argv: str
    answers: Mapping[str, Any]
    shows: str
    """A part of stdout in text mode; empty where only stderr talks."""
    says: str = ""
    body: Mapping[str, Any] | None = None
    """What the last POST or PUT must have carried."""
    lines: bool = False
    """Whether --json writes one document per line."""
    stdin: str = ""
    env: Mapping[str, str] = field(
        default_factory=lambda: {"EXCLAVE_URL": URL, "EXCLAVE_TOKEN": TOKEN}
    )

    def prepare(self, fake: FakeControl) -> None:
        for route, answer in self.answers.items():
            method, path = route.split()
            if isinstance(answer, bytes):
                fake.stream(path, answer)
            else:
                fake.answer(method, path, answer)


WORKFLOW_FILE = f"""
name = "deploy"
queue_id = "{INS}"
steps = [{{ name = "plan", job = {{ kind = "noop" }} }}]
"""
LOG = b"".join(
    [
        event(
            "record",
            '{"execution_id": "exe_00000000000000000000000001", "n": 0, "t_ms": 0,'
            ' "stream": 1, "text": "hello", "offset": 10}',
            "exe_00000000000000000000000001:10",
        ),
        event("end"),
    ]
)
_DONE = samples.workflow(samples.plan(), state="succeeded")
_INSTALLS = {"GET /v1/installs": samples.page(samples.install())}

VERBS: dict[str, Verb] = {
    "auth login": Verb(f"--url {URL} --token -", {"GET /v1/whoami": samples.whoami()}, "account  ada",
                       "Logged in to http://control.test", stdin=TOKEN + "\n", env={}),
    "auth logout": Verb("", {}, "", "You were not logged in."),
    "auth whoami": Verb("", {"GET /v1/whoami": samples.whoami()}, f"org      acme ({ORG})"),
    "orgs show": Verb("", {"GET /v1/org": samples.org()}, f"build queue  {QUE}"),
    "orgs usage": Verb("", {"GET /v1/org/usage": samples.usage()}, "registry  1.5 KiB  100.0 GiB"),
    "orgs four-eyes status": Verb("", {"GET /v1/org/four-eyes": samples.four_eyes()}, "off asked by  ada, until"),
    "orgs four-eyes on": Verb("", {"PUT /v1/org/four-eyes": samples.four_eyes()}, "four eyes     on", body={"on": True}),
    "orgs four-eyes off": Verb("--yes", {"PUT /v1/org/four-eyes": samples.four_eyes()}, "four eyes     on",
                               "Another admin confirms it with: exclave orgs four-eyes off", body={"on": False}),
    "orgs create": Verb("acme", {"POST /v1/orgs": samples.org() | {"token": TOKEN}}, TOKEN,
                        "Store it: it is not shown again.", {"name": "acme"}),
    "tokens list": Verb("", {"GET /v1/tokens": samples.page(samples.token())}, f"operator on install {INS}"),
    "tokens create": Verb("ci --role operator --install customer-one --expires-in 12h",
                          _INSTALLS | {"POST /v1/tokens": samples.token() | {"token": TOKEN}}, TOKEN, "valid until 2030-04-02",
                          {"name": "ci", "account": "ci", "expires_in_s": 43200.0, "instance_admin": False,
                           "grants": [{"role": "operator", "scope": "install", "scope_id": INS}]}),
    "tokens confirm": Verb(TOK, {f"PUT /v1/tokens/{TOK}/confirmed": None}, "", f"Confirmed {TOK}."),
    "tokens revoke": Verb(f"{TOK} --yes", {f"DELETE /v1/tokens/{TOK}": samples.revoked_token()},
                          f"runner          {RUN}  vm-1       still valid",
                          f"Revoked {TOK}, and with it 1 registry token."),
    "registry token": Verb("--repository apps/* --push --minutes 5",
                           {"POST /v1/registry/tokens": samples.registry_token()}, "xcg_1",
                           f"Log in to 127.0.0.1:8701 as `exclave` to pull and push 127.0.0.1:8701/{ORG}/apps/*",
                           {"repository": "apps/*", "push": True, "minutes": 5}),
    "registry tokens list": Verb("", {"GET /v1/registry/tokens": samples.page(samples.listed_registry_token())},
                                 f"{RGT}  apps/demo   pull, push  ada"),
    "registry tokens revoke": Verb(f"{RGT} --yes", {f"DELETE /v1/registry/tokens/{RGT}": None}, "", f"Revoked {RGT}."),
    "registry list": Verb("", {"GET /v1/registry/repositories": samples.page(samples.repository())},
                          "apps/demo   2     3          1.5 KiB"),
    "registry tags": Verb("apps/demo", {"GET /v1/registry/tags": samples.page(samples.tag())}, f"v1   {DIGEST}"),
    "registry gc": Verb("--dry-run --older-than 2h", {"POST /v1/registry/gc": samples.garbage()},
                        "blobs      3 (2.0 MiB)", "These would be removed.", {"dry_run": True, "older_than_s": 7200.0}),
    "runners list": Verb("", {"GET /v1/runners": samples.page(samples.runner())}, "late      1        2030-01-02 03:04:05Z  no sign"),
    "runners get": Verb(RUN, {f"GET /v1/runners/{RUN}": samples.runner()}, "memory     70 MiB"),
    "runners enrol": Verb("--install customer-one", _INSTALLS | {"POST /v1/enrolments": samples.enrolment()},
                          "run      exclave runner --url http://127.0.0.1:8701 --enrolment xce_", "works once",
                          {"queue_id": INS}),
    "runners revoke": Verb(f"{RUN} --reason stolen --yes", {f"POST /v1/runners/{RUN}/revoke": samples.runner()}, "vm-1",
                           body={"reason": "stolen"}),
    "workflows list": Verb("--state running", {"GET /v1/workflows": samples.page(samples.workflow())}, "deploy  running"),
    "workflows get": Verb(WFL, {f"GET /v1/workflows/{WFL}": samples.workflow()}, f"`ok` asks for approval of {DIGEST}"),
    "workflows run": Verb("-", {"POST /v1/workflows": samples.workflow()}, WFL, f"exclave workflows watch {WFL}", stdin=WORKFLOW_FILE),
    "workflows watch": Verb(WFL, {f"GET /v1/workflows/{WFL}": _DONE}, "workflow deploy succeeded in 20s", lines=True),
    "workflows approve": Verb(f"{WFL} ok --digest {DIGEST} --comment fine", {f"POST {STEPS}/ok/approve": samples.workflow()}, "deploy",
                              body={"digest": DIGEST, "comment": "fine"}),
    "workflows deny": Verb(f"{WFL} ok --digest {DIGEST} --skip", {f"POST {STEPS}/ok/deny": samples.workflow()}, "deploy",
                           body={"digest": DIGEST, "comment": "", "skip": True}),
    "workflows retry": Verb(f"{WFL} plan", {f"POST {STEPS}/plan/retry": samples.workflow()}, "deploy"),
    "workflows skip": Verb(f"{WFL} plan --reason pointless", {f"POST {STEPS}/plan/skip": samples.workflow()}, "deploy",
                           body={"reason": "pointless"}),
    "workflows event": Verb(f"{WFL} dns --output ip=10.0.0.1", {f"POST {STEPS}/dns/event": samples.workflow()}, "deploy",
                            body={"outputs": {"ip": "10.0.0.1"}}),
    "workflows approve-all": Verb(f"{WFL} --yes", {f"PUT /v1/workflows/{WFL}/approve-all": samples.workflow()}, "deploy",
                                  body={"approve_all": True}),
    "workflows cancel": Verb(f"{WFL} --yes", {f"POST /v1/workflows/{WFL}/cancel": samples.workflow()}, "deploy"),
    "jobs list": Verb(f"--workflow {WFL}", {"GET /v1/jobs": samples.page(samples.job())}, f"{JOB}  succeeded  plan"),
    "jobs get": Verb(JOB, {f"GET /v1/jobs/{JOB}": samples.job()}, 'outputs    {"add": 3}'),
    "jobs cancel": Verb(f"{JOB} --yes", {f"POST /v1/jobs/{JOB}/cancel": samples.job()}, "state      succeeded"),
    "jobs declare-lost": Verb(f"{JOB} --reason burnt --yes", {f"POST /v1/jobs/{JOB}/declare-lost": samples.job("lost")}, "state      lost",
                              body={"reason": "burnt"}),
    "logs tail": Verb(f"{JOB} --follow", {f"GET /v1/jobs/{JOB}/logs/stream": LOG}, "hello\n", lines=True),
    "logs search": Verb(f"bucket --job {JOB}", {f"GET /v1/jobs/{JOB}/logs/search": samples.page(samples.match())}, f"{JOB} plan: error: no such bucket"),
    "audit list": Verb("", {"GET /v1/audit": samples.page(samples.audit())}, "ada    lane_released  component:db  reason=checked by hand"),
}  # fmt: skip
