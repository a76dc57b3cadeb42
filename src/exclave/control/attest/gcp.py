"""Evidence from Google Cloud: the identity token of an instance, for an audience of ours."""

import re
from typing import Final

from exclave.base.json_values import object_or_empty, text_or_empty
from exclave.control.attest.base import AnyEvidence, Claim, EvidenceRefused
from exclave.control.attest.jwt_keys import KeySets
from exclave.domain.install_identities import Proof
from exclave.domain.runner_principals import name_gcp_email
from exclave.domain.stacks import Cloud
from exclave.wire.attest import GcpEvidence, name_audience

_KEYS: Final = "https://www.googleapis.com/oauth2/v3/certs"
_ISSUER: Final = "https://accounts.google.com"
_PROJECT: Final = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_ZONE: Final = re.compile(r"([a-z]+-[a-z]+[0-9]+)-[a-z]")


class GcpAttestor:
    """Verifies evidence from Google Cloud. `keys_url` replaces the address of Google's keys."""

    def __init__(self, keys: KeySets, keys_url: str = "") -> None:
        self._keys = keys
        self._keys_url = keys_url or _KEYS

    async def verify(self, claim: Claim, evidence: AnyEvidence) -> Proof:
        """Return whose machine the token was issued to."""
        if not isinstance(evidence, GcpEvidence):
            raise EvidenceRefused("identity", "the evidence is not of Google Cloud")
        audience = name_audience(claim.runner_url, claim.bind)
        claims = await self._keys.check_token(
            evidence.token, self._keys_url, issuer=_ISSUER, audience=audience
        )
        engine = object_or_empty(object_or_empty(claims.get("google")).get("compute_engine"))
        project, machine = (text_or_empty(engine.get(key)) for key in ("project_id", "instance_id"))
        zone = _ZONE.fullmatch(text_or_empty(engine.get("zone")))
        if not machine or zone is None or not _PROJECT.fullmatch(project):
            raise EvidenceRefused("identity", "the token is not of a machine")
        email = text_or_empty(claims.get("email"))
        if claims.get("email_verified") is not True or email != name_gcp_email(
            claim.install, project
        ):
            raise EvidenceRefused("identity", f"`{email[:200]}` is not the account of the runner")
        return Proof(
            cloud=Cloud.GCP, account=project, principal=email, machine=machine, region=zone[1]
        )
