"""What the boot script asks of Google Cloud: the document and the certificates of the Stack."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

from exclave.stacks.boot.script import BOOT, fetch, main

METADATA = "http://169.254.169.254/computeMetadata/v1"
SECRETS = "https://secretmanager.googleapis.com/v1"


def read_document() -> dict[str, Any]:
    """Read the document of the Stack."""
    document: dict[str, Any] = json.loads(read_secret(BOOT["document"]))
    return document


def read_certificates(secret: str) -> str:
    """Read the certificates that the customer wants this machine to trust."""
    return read_secret(secret)


def read_secret(secret: str) -> str:
    """Read the newest version of a secret as the account of this machine."""
    headers = {"authorization": f"Bearer {read_token()}"}
    reply = json.loads(fetch(f"{SECRETS}/{secret}/versions/latest:access", headers=headers))
    return base64.b64decode(reply["payload"]["data"]).decode()


def read_token() -> str:
    """Read a token of this machine's account from its metadata server."""
    url = f"{METADATA}/instance/service-accounts/default/token"
    token: str = json.loads(fetch(url, headers={"metadata-flavor": "Google"}))["access_token"]
    return token


if __name__ == "__main__":
    sys.exit(main(read_document, read_certificates))
