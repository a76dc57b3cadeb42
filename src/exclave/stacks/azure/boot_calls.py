"""What the boot script asks of Azure: the document and the certificates of the Stack."""

from __future__ import annotations

import json
import sys
import urllib.parse
from typing import Any

from exclave.stacks.boot.script import BOOT, fetch, main

METADATA = "http://169.254.169.254/metadata/identity/oauth2/token?"
VAULT = "https://vault.azure.net"
VERSION = "api-version=7.4"


def read_document() -> dict[str, Any]:
    """Read the document of the Stack."""
    document: dict[str, Any] = json.loads(read_secret(BOOT["document"]))
    return document


def read_certificates(reference: str) -> str:
    """Read the certificates that the customer wants this machine to trust."""
    return read_secret(reference)


def read_secret(reference: str) -> str:
    """Read a secret of the runner's vault as the identity of this machine."""
    headers = {"authorization": f"Bearer {read_token()}"}
    value: str = json.loads(fetch(f"{reference}?{VERSION}", headers=headers))["value"]
    return value


def read_token() -> str:
    """Read a token of this machine's identity for vaults from its metadata service."""
    facts = {"api-version": "2018-02-01", "resource": VAULT, "client_id": BOOT["identity"]}
    url = METADATA + urllib.parse.urlencode(facts)
    token: str = json.loads(fetch(url, headers={"Metadata": "true"}))["access_token"]
    return token


if __name__ == "__main__":
    sys.exit(main(read_document, read_certificates))
