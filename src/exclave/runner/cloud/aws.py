"""The runner in an account of AWS: roles by STS, secrets by Secrets Manager."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree as ET

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.base.secrets import Secret
from exclave.runner.cloud.accounts import (
    API_LIMITS,
    Caller,
    Credential,
    RoleSession,
    SecretDenied,
    explain_secret,
)
from exclave.runner.cloud.exchange import CloudRefused, ask_cloud, ask_cloud_json
from exclave.runner.cloud.imds import AwsMetadata, MachineKeys, read_time
from exclave.runner.cloud.sigv4 import AwsKeys, SignedFor, sign_post

SESSION_S: Final = 900
"""How long a job may act as its role without asking again: the shortest that AWS knows."""
_FORM: Final = "application/x-www-form-urlencoded; charset=utf-8"
_JSON: Final = "application/x-amz-json-1.1"
_VERSION: Final = "2011-06-15"
_EARLY: Final = timedelta(minutes=5)
_CURRENT: Final = "AWSCURRENT"


@dataclass(frozen=True, slots=True)
class AwsAddresses:
    """Where the APIs of a region are; tests have their own."""

    domain: str = "amazonaws.com"
    sts: str = ""
    secrets: str = ""
    logs: str = ""

    def find(self, service: str, region: str) -> str:
        """Return the URL of a service in a region."""
        own = {"sts": self.sts, "secretsmanager": self.secrets, "logs": self.logs}.get(service, "")
        return own or f"https://{service}.{region}.{self.domain}"


@dataclass(slots=True)
class AwsAccount:
    """The account of AWS that the runner's machine is in."""

    region: str
    caller: Caller
    metadata: AwsMetadata = field(default_factory=AwsMetadata)
    addresses: AwsAddresses = AwsAddresses()
    _machine: MachineKeys | None = None

    async def read_secret(self, reference: str) -> Secret | None:
        """Return the current value of a secret; blank means that it was not given."""
        try:
            reply = await self._ask("GetSecretValue", {"SecretId": reference})
        except SecretDenied as denied:
            if _has_no_value(denied):
                return None
            raise
        value = text_or_empty(reply.get("SecretString"))
        return Secret(value) if value.strip() else None

    async def has_secret(self, reference: str) -> str:
        """Return the id of the current version; empty if there is none."""
        reply = await self._ask("DescribeSecret", {"SecretId": reference})
        versions = object_or_empty(reply.get("VersionIdsToStages"))
        current = [name for name, stages in versions.items() if _CURRENT in list_or_empty(stages)]
        return current[0] if current else ""

    async def write_secret(self, reference: str, value: Secret) -> None:
        """Raise: in AWS, the Stack generates secrets, and only the customer changes them."""
        del value
        raise CloudRefused(f"the runner may not write the secret `{reference}`")

    async def read_oldest(self, reference: str) -> Secret | None:
        """Return the value, which the Stack generated once and nobody changes."""
        return await self.read_secret(reference)

    async def assume_role(self, session: RoleSession, resource: str = "") -> Credential:
        """Return the keys of a role for a job, for a quarter of an hour."""
        del resource
        form = {
            "Action": "AssumeRole",
            "Version": _VERSION,
            "RoleArn": session.role,
            "RoleSessionName": f"exclave-{session.execution}",
            "SourceIdentity": session.job,
            "DurationSeconds": str(SESSION_S),
            **_write_tags(session.tags),
        }
        body = urlencode(form).encode()
        what = f"STS, asked for the role `{session.role}`,"
        text = await self.caller.retry(lambda: self._post("sts", body, _FORM, what, {}))
        return _read_credential(text)

    async def post_json(self, service: str, target: str, request: JsonObject, *, what: str) -> str:
        """Return the answer of a service that is asked in JSON."""
        body, more = json.dumps(request).encode(), {"x-amz-target": target}
        return await self.caller.retry(lambda: self._post(service, body, _JSON, what, more))

    async def _ask(self, action: str, request: JsonObject) -> JsonObject:
        body, what = json.dumps(request).encode(), "Secrets Manager"
        target = {"x-amz-target": f"secretsmanager.{action}"}

        async def ask() -> JsonObject:
            headers = await self._sign("secretsmanager", body, _JSON, target)
            url = f"{self.addresses.find('secretsmanager', self.region)}/"
            return await ask_cloud_json(
                "POST",
                url,
                what=what,
                headers=headers,
                body=body,
                limits=API_LIMITS,
                route=self.caller.route,
            )

        try:
            return await self.caller.retry(ask)
        except CloudRefused as refused:
            raise explain_secret(refused) from refused

    async def _post(
        self, service: str, body: bytes, kind: str, what: str, more: Mapping[str, str]
    ) -> str:
        headers = await self._sign(service, body, kind, more)
        url = f"{self.addresses.find(service, self.region)}/"
        return await ask_cloud(
            "POST",
            url,
            what=what,
            headers=headers,
            body=body,
            limits=API_LIMITS,
            route=self.caller.route,
        )

    async def _sign(
        self, service: str, body: bytes, kind: str, more: Mapping[str, str]
    ) -> dict[str, str]:
        keys = await self.read_machine_keys()
        host = urlsplit(self.addresses.find(service, self.region)).netloc
        scope = SignedFor(service, self.region, self.caller.clock.now())
        return sign_post(keys, scope, host, body, kind, more)

    async def read_machine_keys(self) -> AwsKeys:
        """Return the keys of the machine's own role, read anew before they end."""
        ends = None if self._machine is None else self._machine.expires_at
        if self._machine is None or ends is None or ends - self.caller.clock.now() < _EARLY:
            self._machine = await self.metadata.read_keys()
        return self._machine.keys


def _write_tags(tags: Mapping[str, str]) -> dict[str, str]:
    form: dict[str, str] = {}
    for number, (name, value) in enumerate(sorted(tags.items()), start=1):
        form |= {f"Tags.member.{number}.Key": name, f"Tags.member.{number}.Value": value}
    return form


def _has_no_value(denied: SecretDenied) -> bool:
    """Return whether a secret exists, but was never given a value."""
    return "staging label" in denied.message and _CURRENT in denied.message


def _read_credential(text: str) -> Credential:
    if "<!" in text:
        raise CloudRefused("STS answered with a document type, which no answer of AWS has")
    try:
        tree = ET.fromstring(text)  # noqa: S314 - no document type, so no entities
    except ET.ParseError as error:
        raise CloudRefused("STS did not answer with XML") from error
    values = {element.tag.rpartition("}")[2]: element.text or "" for element in tree.iter()}
    ends = read_time(values.get("Expiration", ""))
    if not values.get("SecretAccessKey") or ends is None:
        raise CloudRefused("STS answered without keys")
    keys = AwsKeys(
        values.get("AccessKeyId", ""),
        Secret(values["SecretAccessKey"]),
        Secret(values.get("SessionToken", "")),
    )
    return Credential(ends, keys=keys)
