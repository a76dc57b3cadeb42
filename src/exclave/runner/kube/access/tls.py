"""TLS to a cluster: its certificate authority, and the runner's client certificate."""

import base64
import binascii
import ssl
import tempfile
from typing import Final

from exclave.base.secrets import Secret
from exclave.runner.kube.api.errors import AccessRefused

_NO_CA: Final = "the cluster has no certificate authority, and its certificate cannot be checked"


def make_tls(ca_pem: str, client: tuple[str, Secret] | None = None) -> ssl.SSLContext:
    """Return a context that trusts this authority only; public roots if it is empty.

    `client` are the certificate and key of the runner, both PEM.
    """
    try:
        tls = ssl.create_default_context(cadata=ca_pem or None)
    except (ssl.SSLError, ValueError) as error:
        message = f"the certificate authority of the cluster is not PEM: {error}"
        raise AccessRefused(message) from error
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    if client is not None:
        _load_client(tls, *client)
    return tls


def decode_pem(data: str, what: str) -> str:
    """Return the PEM that a kubeconfig or an output holds in base64."""
    try:
        return base64.b64decode("".join(data.split()), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise AccessRefused(f"{what} is not PEM in base64") from error


def require_ca(data: str) -> str:
    """Return the PEM of an authority that has to be there."""
    if not data.strip():
        raise AccessRefused(_NO_CA)
    return decode_pem(data, "the certificate authority of the cluster")


def _load_client(tls: ssl.SSLContext, certificate: str, key: Secret) -> None:
    """Load a client certificate. OpenSSL reads files only, so it gets one that has no name."""
    with tempfile.TemporaryFile() as file:
        file.write(f"{certificate.rstrip()}\n{key.reveal()}".encode())
        file.flush()
        try:
            tls.load_cert_chain(f"/dev/fd/{file.fileno()}")
        except (ssl.SSLError, OSError) as error:
            message = "the client certificate of the cluster and its key do not fit"
            raise AccessRefused(message) from error
