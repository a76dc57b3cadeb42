"""Google Cloud on the loopback, as far as machines, runners and jobs ask it.

What exists there, and who may do what, is read off the state of a module that was applied with the
stand-in provider: accounts and whether they are disabled, secrets, bindings, roles.
"""

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.cloud_issuers import TokenIssuer
from tests.support.stand_ins.module import StandInModule

KEYS = "/oauth2/v3/certs"
_METADATA = "/computeMetadata/v1/"
_BEARER = "Bearer token-of-"
_SECRET = re.compile(r"/v1/(projects/[^/]+/secrets/[^/:]+)(.*)")
_ACCOUNT = re.compile(r"/v1/projects/-/serviceAccounts/(.+):generateAccessToken")
_PREDEFINED = {
    "roles/secretmanager.secretVersionAdder": ["secretmanager.versions.add"],
    "roles/secretmanager.secretAccessor": ["secretmanager.versions.access"],
    "roles/iam.serviceAccountUser": ["iam.serviceAccounts.actAs"],
}
Answer = tuple[int, Any]
DENIED: Answer = (403, {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "no"}})


@dataclass
class EmulatedGcp:
    """A project, and the metadata server of a machine whose account is the runner's."""

    project: str
    zone: str
    url: str = ""
    issuer: TokenIssuer = field(default_factory=TokenIssuer)
    account: str = ""
    """The e-mail of the machine's account."""
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: dict[str, list[str]] = field(default_factory=dict)
    """The versions of each secret, the oldest first."""
    logs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The entries of each log."""
    others: Callable[[str, Any], Answer | None] = lambda _path, _body: None
    """Answers what is no address of Google's, such as the vendor's."""
    _read: int = 0

    def load(self, module: StandInModule) -> None:
        """Let everything be as the module says that was applied."""
        self.resources = module.read_resources()
        self.account = self.find("google_service_account")["runner"]["email"]
        journal = module.read_journal()
        for line in journal[self._read :]:
            values = line["values"]
            if line["type"] == "google_secret_manager_secret_version":
                text = values.get("secret_data_wo") or values.get("secret_data")
                if line["operation"] == "create" and text:
                    self.values.setdefault(values["secret"], []).append(text)
        self._read = len(journal)

    def find(self, kind: str) -> dict[str, Any]:
        """Return the resources of a kind by their names."""
        return {
            name.partition(".")[2]: body
            for name, body in self.resources.items()
            if name.startswith(f"{kind}.")
        }

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], body: Any = None
    ) -> Answer:
        """Answer a request as Google would; texts are no JSON."""
        parts = urlsplit(target)
        if (other := self.others(parts.path, body)) is not None:
            return other
        if parts.path == KEYS:
            return 200, self.issuer.list_keys()
        if parts.path.startswith(_METADATA):
            if headers.get("metadata-flavor") != "Google":
                return DENIED
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            return self._answer_metadata(parts.path.removeprefix(_METADATA), query)
        who = headers.get("authorization", "").removeprefix(_BEARER)
        if not self._is_enabled(who):
            return 401, {"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "no"}}
        if match := _ACCOUNT.fullmatch(unquote(parts.path)):
            return self._answer_token(who, match[1])
        if match := _SECRET.fullmatch(parts.path):
            return self._answer_secret(method, who, match[1], match[2], body)
        if parts.path == "/v2/entries:write":
            return self._answer_entries(who, body)
        return 404, {}

    def _answer_entries(self, who: str, body: Any) -> Answer:
        rights = self._list_rights("google_project_iam_member", "project", self.project)
        if "logging.logEntries.create" not in rights.get(who, ()):
            return DENIED
        self.logs.setdefault(body["logName"], []).extend(body["entries"])
        return 200, {}

    def _answer_metadata(self, path: str, query: Mapping[str, str]) -> Answer:
        match path:
            case "instance/service-accounts/default/token":
                return 200, {"access_token": f"token-of-{self.account}", "expires_in": 3600}
            case "instance/service-accounts/default/identity":
                return 200, self._sign_identity(query["audience"])
            case "instance/":
                place = f"projects/1/zones/{self.zone}"
                return 200, {"id": 42, "zone": place, "machineType": "e2", "image": "u"}
            case _:
                return 404, ""

    def _sign_identity(self, audience: str) -> str:
        now = int(time.time())
        engine = {"project_id": self.project, "instance_id": "42", "zone": self.zone}
        return self.issuer.sign(
            {
                "iss": "https://accounts.google.com", "aud": audience, "email": self.account,
                "email_verified": True, "iat": now, "exp": now + 3600,
                "google": {"compute_engine": engine},
            }
        )  # fmt: skip

    def _answer_token(self, who: str, account: str) -> Answer:
        places = self.find("google_service_account").values()
        name = next((one["name"] for one in places if one["email"] == account), "")
        rights = self._list_rights("google_service_account_iam_member", "service_account_id", name)
        if "iam.serviceAccounts.getAccessToken" not in rights.get(who, ()):
            return DENIED
        if not self._is_enabled(account):
            return DENIED
        return 200, {"accessToken": f"token-of-{account}", "expireTime": "2099-01-01T00:00:00Z"}

    def _answer_secret(self, method: str, who: str, name: str, call: str, body: Any) -> Answer:
        secret = name.rpartition("/")[2]
        rights = self._list_rights("google_secret_manager_secret_iam_member", "secret_id", secret)
        mine, values = rights.get(who, set()), self.values.setdefault(name, [])
        if method == "POST" and call == ":addVersion":
            if "secretmanager.versions.add" not in mine:
                return DENIED
            values.append(base64.b64decode(body["payload"]["data"]).decode())
            return 200, {}
        if match := re.fullmatch(r"/versions/(\w+):access", call):
            if "secretmanager.versions.access" not in mine:
                return DENIED
            number = len(values) if match[1] == "latest" else int(match[1])
            if not 0 < number <= len(values):
                message = f"Secret [{name}/versions/latest] not found or has no versions."
                return 404, {"error": {"code": 404, "status": "NOT_FOUND", "message": message}}
            data = base64.b64encode(values[number - 1].encode()).decode()
            return 200, {"payload": {"data": data}}
        if call == "/versions" and "secretmanager.versions.list" in mine:
            return 200, {
                "versions": [{"name": f"{name}/versions/{n + 1}"} for n in range(len(values))]
            }
        return DENIED

    def _is_enabled(self, email: str) -> bool:
        accounts = self.find("google_service_account").values()
        return any(one["email"] == email and not one["disabled"] for one in accounts)

    def _list_rights(self, kind: str, key: str, place: str) -> dict[str, set[str]]:
        """Return what each account may do with a resource: permissions, and other roles."""
        roles = _PREDEFINED | {
            one["id"]: one["permissions"]
            for one in self.find("google_project_iam_custom_role").values()
        }
        rights: dict[str, set[str]] = {}
        for one in self.find(kind).values():
            if one[key].rpartition("/")[2] == place.rpartition("/")[2]:
                email = one["member"].partition(":")[2]
                rights.setdefault(email, set()).update(roles.get(one["role"], ()))
        return rights


@contextmanager
def start_gcp(project: str, zone: str) -> Iterator[EmulatedGcp]:
    """Serve a project in which there is nothing yet."""
    gcp = EmulatedGcp(project, zone)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply()

        def do_POST(self) -> None:
            self._reply()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of the base
            """Log nothing."""

        def _reply(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            sent = self.rfile.read(int(headers.get("content-length", 0)))
            body = json.loads(sent) if sent else None
            status, reply = gcp.answer(self.command, self.path, headers, body)
            text = reply if isinstance(reply, str | bytes) else json.dumps(reply)
            data = text.encode() if isinstance(text, str) else text
            self.send_response(status)
            self.send_header("Metadata-Flavor", "Google")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    gcp.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield gcp
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
