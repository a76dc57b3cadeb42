"""What the boot script asks of AWS: the document and the certificates of the Stack."""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
import time
from typing import Any

from exclave.stacks.boot.script import BOOT, fetch, main

METADATA = "http://169.254.169.254/latest"
SERVICE = "https://{service}.{region}.{domain}/"


def read_document() -> dict[str, Any]:
    """Read the document of the Stack."""
    reply = call_aws("secretsmanager", "secretsmanager.GetSecretValue", SecretId=BOOT["document"])
    document: dict[str, Any] = json.loads(reply["SecretString"])
    return document


def read_certificates(parameter: str) -> str:
    """Read the certificates that the customer wants this machine to trust."""
    text: str = call_aws("ssm", "AmazonSSM.GetParameter", Name=parameter)["Parameter"]["Value"]
    return text


def call_aws(service: str, target: str, **request: str) -> dict[str, Any]:
    """Call a service of AWS as the role of this machine."""
    url = SERVICE.format(service=service, region=BOOT["region"], domain=BOOT["domain"])
    body = json.dumps(request).encode()
    reply: dict[str, Any] = json.loads(fetch(url, body, sign(service, target, url, body)))
    return reply


def sign(service: str, target: str, url: str, body: bytes) -> dict[str, str]:
    """Return the headers of a signed request: AWS Signature Version 4."""
    keys, now = read_credentials(), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    headers = {
        "content-type": "application/x-amz-json-1.1",
        "host": url.split("/")[2],
        "x-amz-date": now,
        "x-amz-security-token": keys["Token"],
        "x-amz-target": target,
    }
    names, scope = ";".join(headers), [now[:8], BOOT["region"], service, "aws4_request"]
    lines = [f"{name}:{value}" for name, value in headers.items()]
    canonical = ["POST", "/", "", *lines, "", names, hashlib.sha256(body).hexdigest()]
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    key = ("AWS4" + keys["SecretAccessKey"]).encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    text = "\n".join(["AWS4-HMAC-SHA256", now, "/".join(scope), digest])
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    who = f"Credential={keys['AccessKeyId']}/{'/'.join(scope)}"
    proof = f"AWS4-HMAC-SHA256 {who}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": proof}


def read_credentials() -> dict[str, str]:
    """Read the credentials of this machine's role from its metadata service."""
    wanted = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    token = fetch(f"{METADATA}/api/token", headers=wanted, method="PUT").decode()
    headers = {"X-aws-ec2-metadata-token": token}
    url = f"{METADATA}/meta-data/iam/security-credentials/"
    role = fetch(url, headers=headers).decode().split()[0]
    keys: dict[str, str] = json.loads(fetch(url + role, headers=headers))
    return keys


if __name__ == "__main__":
    sys.exit(main(read_document, read_certificates))
