"""Tokens of Azure AKS: those of a managed identity of the machine."""

from dataclasses import dataclass
from typing import Final

from exclave.base.clock import Clock
from exclave.runner.cloud.imds import METADATA, AzureMetadata
from exclave.runner.kube.access.cloud_http import refuse_access
from exclave.runner.kube.access.tokens import Issue, IssuedToken

_EARLY_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class AzureEndpoints:
    """Where Azure is; tests have their own."""

    metadata: str = METADATA


def issue_aks_token(
    server_id: str, client_id: str, clock: Clock, endpoints: AzureEndpoints
) -> Issue:
    """Return an issuer of tokens of an identity; without `client_id`, of the machine's only one."""

    async def issue() -> IssuedToken:
        with refuse_access():
            metadata = AzureMetadata(clock, endpoints.metadata)
            token = await metadata.read_token(server_id, client_id)
        left_s = (token.expires_at - clock.now()).total_seconds()
        return IssuedToken(token.value, max(left_s - _EARLY_S, 1.0))

    return issue
