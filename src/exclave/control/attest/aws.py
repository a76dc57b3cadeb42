"""Evidence from AWS: a signed `GetCallerIdentity`, which we send and AWS answers.

The runner signs the request with the keys of its machine's role and hands us the headers. Its
digest of nonce, install and key is one of the signed headers, so nobody can use them for another
try, another install or another key. The address and the body are ours: headers that were signed
for anything else are refused by AWS.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final
from xml.etree import ElementTree as ET

from exclave.base.aws_regions import Partition, find_partition, name_service
from exclave.base.clock import Clock
from exclave.control.attest.base import AnyEvidence, Claim, CloudUnreachable, EvidenceRefused
from exclave.control.attest.fetching import Fetched, Fetcher
from exclave.domain.install_identities import Proof
from exclave.domain.stacks import Cloud
from exclave.wire.attest import (
    BIND_HEADER,
    SIGNED_HEADERS,
    STS_BODY,
    STS_CONTENT_TYPE,
    AwsEvidence,
    write_bind,
)

_MOST_BYTES: Final = 8 << 10
_WITHIN: Final = timedelta(seconds=300)
"""How far the clock of a machine may be off; AWS itself allows 15 minutes."""
_VALUE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,4094}[\x21-\x7e])?")
"""Of a header: no line breaks, no blanks at the ends, which proxies drop."""
_AUTHORIZATION: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([A-Z0-9]{16,128})/(\d{8})/([a-z0-9-]+)/sts/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)
_ROLE: Final = re.compile(
    r"arn:(aws[a-z-]*):sts::(\d{12}):assumed-role/([\w+=,.@-]{1,64})/(i-[0-9a-f]{8,17})"
)
"""For the role of a machine the session is named after the instance, and by AWS itself."""
_NAMESPACE: Final = {"sts": "https://sts.amazonaws.com/doc/2011-06-15/"}


class AwsAttestor:
    """Verifies evidence from AWS. `sts_url` replaces the address of STS in tests."""

    def __init__(self, fetcher: Fetcher, clock: Clock, sts_url: str = "") -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._sts_url = sts_url

    async def verify(self, claim: Claim, evidence: AnyEvidence) -> Proof:
        """Return whose machine signed."""
        if not isinstance(evidence, AwsEvidence):
            raise EvidenceRefused("identity", "the evidence is not of AWS")
        region = evidence.region
        partition = find_partition(region)
        if partition is None or (claim.region and region != claim.region):
            raise EvidenceRefused("region", f"{region}, expected {claim.region}")
        host = name_service("sts", region)
        headers = self._check_headers(evidence.headers, claim, region, host)
        reply = await self._fetcher.fetch(
            "POST",
            f"{self._sts_url or f'https://{host}'}/",
            most_bytes=_MOST_BYTES,
            headers=headers,
            body=STS_BODY,
        )
        return _read_identity(_read_result(reply), partition, region)

    def _check_headers(
        self, sent: Mapping[str, str], claim: Claim, region: str, host: str
    ) -> dict[str, str]:
        """Return the headers to send; refuse all that AWS would not see as the runner did."""
        headers = {name.lower(): value for name, value in sent.items()}
        if len(headers) != len(sent) or set(headers) != {*SIGNED_HEADERS, "authorization"}:
            raise EvidenceRefused("headers", "other headers than the six, or one twice")
        if not all(_VALUE.fullmatch(value) for value in headers.values()):
            raise EvidenceRefused("headers", "a line break, a blank or too much in a header")
        if headers["host"] != host:
            raise EvidenceRefused("headers", "signed for another host")
        parts = _AUTHORIZATION.fullmatch(headers["authorization"])
        if parts is None or parts[3] != region:
            raise EvidenceRefused("headers", "signed for another service or region")
        if parts[4] != ";".join(sorted(SIGNED_HEADERS)):
            raise EvidenceRefused("headers", "not every header is signed")
        if headers[BIND_HEADER] != write_bind(claim.bind):
            raise EvidenceRefused("nonce", "signed for another nonce, install or key")
        if headers["content-type"] != STS_CONTENT_TYPE:
            raise EvidenceRefused("headers", "another content type")
        self._check_date(headers["x-amz-date"], parts[2])
        return headers

    def _check_date(self, stamp: str, day: str) -> None:
        try:
            at = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError as error:
            raise EvidenceRefused("date", "not a date") from error
        if not stamp.startswith(day) or abs(self._clock.now() - at) > _WITHIN:
            raise EvidenceRefused("date", f"signed at {at:%Y-%m-%dT%H:%M:%SZ}: check the clocks")


def _read_result(reply: Fetched) -> dict[str, str]:
    """Return the texts of an answer of STS."""
    if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or (
        reply.status == HTTPStatus.TOO_MANY_REQUESTS
    ):
        raise CloudUnreachable(f"STS answered {reply.status}")
    if reply.status != HTTPStatus.OK:
        raise EvidenceRefused("identity", f"STS answered {reply.status}: {_find_code(reply.body)}")
    if b"<!" in reply.body:
        raise EvidenceRefused("identity", "STS answered with a document type")
    try:
        tree = ET.fromstring(reply.body)  # noqa: S314 - no document type, so no entities
    except ET.ParseError as error:
        raise EvidenceRefused("identity", "STS did not answer with XML") from error
    result = tree.find("sts:GetCallerIdentityResult", _NAMESPACE)
    if result is None:
        raise EvidenceRefused("identity", "STS answered without an identity")
    return {element.tag.rpartition("}")[2]: element.text or "" for element in result}


def _read_identity(result: Mapping[str, str], partition: Partition, region: str) -> Proof:
    """Return the machine; a person, a user or another kind of role is refused."""
    arn = result.get("Arn", "")
    role = _ROLE.fullmatch(arn)
    if role is None:
        raise EvidenceRefused("identity", f"`{arn[:200]}` is not the role of a machine")
    if role[1] != partition.name or role[2] != result.get("Account"):
        raise EvidenceRefused("identity", f"`{arn[:200]}` is of another partition or account")
    return Proof(
        cloud=Cloud.AWS, account=role[2], principal=role[3], machine=role[4], region=region
    )


def _find_code(body: bytes) -> str:
    code = re.search(rb"<Code>([A-Za-z.]{1,64})</Code>", body)
    return "no reason" if code is None else code[1].decode()
