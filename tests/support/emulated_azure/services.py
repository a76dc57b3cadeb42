"""What a machine asks in Azure: its metadata server, and vaults that check who may do what."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt

from tests.support.cloud_issuers import Authority, Signer, TokenIssuer, make_rsa_key
from tests.support.emulated_azure.deployment import LOGS, SUBSCRIPTION, TENANT, Deployment

VAULTS = "https://vault.azure.net"
SIGNER = "metadata.azure.com"
READ = "getSecret"
WRITE = "Microsoft.KeyVault/vaults/secrets/setSecret/action"
PUBLISH = "publish"
BUILT_IN = {
    "4633458b-17de-408a-b874-0445c86b69e6": frozenset({READ}),
    "3913510d-42f4-4e42-8a64-420c390055eb": frozenset({PUBLISH}),
}
"""What built-in roles allow in vaults and rules."""
MONITOR = "https://monitor.azure.com"


@dataclass(frozen=True)
class Identity:
    """A managed identity."""

    id: str
    principal: str


@dataclass
class EmulatedAzure:
    """A subscription with one machine, as far as a runner sees it."""

    url: str = ""
    machine: str = "vm-1"
    issuer: TokenIssuer = field(default_factory=TokenIssuer)
    root: Authority = field(default_factory=lambda: Authority("Root"))
    identities: dict[str, Identity] = field(default_factory=dict)
    """Those of the machine, by their client ids."""
    rights: set[tuple[str, str, str]] = field(default_factory=set)
    """Principal, scope and data action."""
    vaults: dict[str, str] = field(default_factory=dict)
    """The ids of vaults by their hosts."""
    secrets: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """All values of each secret, by host and name; the oldest first."""
    rule: str = ""
    """The id of the rule that lines of the log are posted to."""
    lines: list[dict[str, str]] = field(default_factory=list)
    capacity: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        key = make_rsa_key()
        self.signer = Signer(self.root.issue(SIGNER, key, host=SIGNER), key)

    def apply(self, deployment: Deployment) -> None:
        """Make what a deployment stack makes of a template: what is not in it is removed."""
        resources = deployment.list_resources()
        with self.lock:
            machine = deployment.find("RunnerMachine")
            self.capacity = machine["sku"]["capacity"]
            ids = machine["identity"]["userAssignedIdentities"]
            self.identities = {}
            for identity in ids:
                facts = deployment.resolve(f"[reference('{identity}', '2024-11-30')]")
                self.identities[facts["clientId"]] = Identity(identity, facts["principalId"])
            vaults = [body for body in resources if body["type"] == "Microsoft.KeyVault/vaults"]
            self.vaults = {f"{body['name']}.vault.azure.net": body["id"] for body in vaults}
            log = deployment.find_template(deployment.find("RunnerLog")["id"])
            assert log is not None
            self.rule = log.find("LogRule")["id"]
            self.rights = set(_list_rights(resources))
            for body in resources:
                if body["type"] == "Microsoft.KeyVault/vaults/secrets":
                    vault, name = body["name"].split("/")
                    self._store(f"{vault}.vault.azure.net", name, body["properties"]["value"])

    def read(self, host: str, name: str) -> str:
        """Return the newest value of a secret."""
        return self.secrets[host, name][-1]

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any]:
        """Answer a request to the metadata server, to a vault, or for the keys of tokens."""
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/keys":
            return 200, self.issuer.list_keys()
        if parts.path.startswith("/metadata/"):
            if headers.get("metadata") != "true":
                return 400, {"error": "no header Metadata"}
            return self._answer_metadata(parts.path, query)
        if parts.path.startswith(f"/{LOGS}/"):
            principal = self._read_principal(headers.get("authorization", ""), MONITOR)
            if (principal, self.rule, PUBLISH) not in self.rights:
                return 403, {"error": {"code": "OperationFailed"}}
            self.lines += json.loads(body)
            return 204, None
        with self.lock:
            return self._answer_vault(method, parts.path, headers, body)

    def _answer_metadata(self, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
        match path:
            case "/metadata/identity/oauth2/token":
                identity = self.identities.get(query.get("client_id", ""))
                if identity is None:
                    return 400, {"error": "invalid_request"}
                return 200, self._write_token(identity, query["resource"])
            case "/metadata/attested/document":
                return 200, {"encoding": "pkcs7", "signature": self._sign(query["nonce"])}
            case "/metadata/instance/compute":
                return 200, {"vmId": self.machine, "vmSize": "Standard_B2s"}
            case _:
                return 404, {}

    def _write_token(self, identity: Identity, resource: str) -> dict[str, str]:
        ends = datetime.now(UTC) + timedelta(hours=24)
        claims = {
            "iss": f"https://sts.windows.net/{TENANT}/",
            "aud": resource,
            "iat": int(datetime.now(UTC).timestamp()),
            "exp": int(ends.timestamp()),
            "tid": TENANT,
            "oid": identity.principal,
            "xms_mirid": identity.id,
        }
        token = self.issuer.sign(claims)
        return {"access_token": token, "expires_on": str(claims["exp"]), "resource": resource}

    def _sign(self, nonce: str) -> str:
        now = datetime.now(UTC)
        times = {"createdOn": now, "expiresOn": now + timedelta(hours=6)}
        facts = {
            "nonce": nonce,
            "vmId": self.machine,
            "subscriptionId": SUBSCRIPTION,
            "timeStamp": {k: at.strftime("%m/%d/%y %H:%M:%S -0000") for k, at in times.items()},
        }
        return self.signer.sign(facts)

    def _answer_vault(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any]:
        host, _, rest = path.strip("/").partition("/secrets/")
        name, _, version = rest.partition("/")
        principal = self._read_principal(headers.get("authorization", ""))
        needed = WRITE if method == "PUT" else READ
        if (principal, self.vaults.get(host, ""), needed) not in self.rights:
            error = {"code": "Forbidden", "innererror": {"code": "ForbiddenByRbac"}}
            return 403, {"error": error}
        if method == "PUT":
            self._store(host, name, json.loads(body)["value"])
            return 200, {}
        values = self.secrets.get((host, name), [])
        if not values:
            return 404, {"error": {"code": "SecretNotFound"}}
        if version == "versions":
            url = f"https://{host}/secrets/{name}"
            entries = [
                {"id": f"{url}/v{index}", "attributes": {"enabled": True, "created": index + 1}}
                for index in range(len(values))
            ]
            return 200, {"value": entries}
        index = int(version.removeprefix("v")) if version else -1
        return 200, {"value": values[index]}

    def _read_principal(self, authorization: str, audience: str = VAULTS) -> str:
        try:
            claims = jwt.decode(
                authorization.removeprefix("Bearer "),
                self.issuer.key.public_key(),
                algorithms=["RS256"],
                audience=audience,
            )
        except jwt.InvalidTokenError:
            return ""
        return str(claims["oid"])

    def _store(self, host: str, name: str, value: str) -> None:
        values = self.secrets.setdefault((host, name), [])
        if values[-1:] != [value]:
            values.append(value)


def _list_rights(resources: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Return what is allowed in vaults: by built-in roles, and by those of the template."""
    own = {
        body["id"]: body["properties"]["permissions"][0]["dataActions"]
        for body in resources
        if body["type"] == "Microsoft.Authorization/roleDefinitions"
    }
    for body in resources:
        if body["type"] == "Microsoft.Authorization/roleAssignments" and "scope" in body:
            facts = body["properties"]
            role = facts["roleDefinitionId"]
            for action in own.get(role, BUILT_IN.get(role.rpartition("/")[2], ())):
                yield facts["principalId"], body["scope"], action


@contextmanager
def start_azure() -> Iterator[EmulatedAzure]:
    """Serve a subscription on the loopback."""
    azure = EmulatedAzure()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply()

        def do_PUT(self) -> None:
            self._reply()

        def do_POST(self) -> None:
            self._reply()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of the base
            """Log nothing."""

        def _reply(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", "0")))
            status, answer = azure.answer(self.command, self.path, headers, body)
            data = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    azure.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield azure
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
