"""Access from a pod to the cluster that it runs in."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exclave.base.clock import Clock
from exclave.runner.kube.access.tls import make_tls
from exclave.runner.kube.access.tokens import IssuedTokens, NoteToken, read_token_file
from exclave.runner.kube.api.connection import Connection
from exclave.runner.kube.api.errors import AccessRefused

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class PodAccount:
    """What Kubernetes gives a pod: the address of the API server, its authority, a token file."""

    host: str
    port: str
    folder: Path = _ACCOUNT

    def connect(self, clock: Clock, note: NoteToken) -> Connection:
        """Return the connection; the token file is read again each minute."""
        try:
            ca = (self.folder / "ca.crt").read_text("ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise AccessRefused(f"`{self.folder}/ca.crt` cannot be read: {error}") from error
        host = f"[{self.host}]" if ":" in self.host else self.host
        issue = read_token_file(self.folder / "token")
        credential = IssuedTokens(issue, clock, note)
        return Connection(f"https://{host}:{self.port}", make_tls(ca), credential)


def find_pod_account(env: Mapping[str, str] = os.environ) -> PodAccount | None:
    """Return the account of the pod that this process runs in; None outside of a cluster."""
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (_ACCOUNT / "token").exists():
        return None
    return PodAccount(host, port)
