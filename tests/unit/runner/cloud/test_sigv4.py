"""Signatures, compared with those of botocore for requests that chance makes."""

import string
from collections.abc import Mapping
from datetime import UTC, datetime
from unittest.mock import patch

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from exclave.base.secrets import Secret
from exclave.runner.cloud.sigv4 import AwsKeys, SignedFor, sign_post

NAMES = st.text(string.ascii_lowercase + "-", min_size=1, max_size=20).map(lambda name: f"x-{name}")
VALUES = st.text(string.ascii_letters + string.digits + "-_./=+", min_size=1, max_size=60)
SECRETS = st.text(string.ascii_letters + string.digits + "/+=", min_size=1, max_size=60)


@given(
    body=st.binary(max_size=200),
    more=st.dictionaries(NAMES, VALUES, max_size=4),
    service=st.sampled_from(["sts", "secretsmanager", "logs", "ecr"]),
    region=st.sampled_from(["eu-west-1", "cn-north-1", "us-gov-east-1"]),
    secret=SECRETS,
    token=st.none() | SECRETS,
    at=st.datetimes(datetime(2020, 1, 1), datetime(2060, 1, 1)),  # noqa: DTZ001 - botocore's clock has no zone
)
def test_every_signature_is_the_one_of_botocore(
    body: bytes,
    more: Mapping[str, str],
    service: str,
    region: str,
    secret: str,
    token: str | None,
    at: datetime,
) -> None:
    host = f"{service}.{region}.amazonaws.com"
    request = AWSRequest(
        "POST", f"https://{host}/", headers={"Content-Type": "a/b", **more}, data=body
    )
    with patch.object(botocore.auth, "get_current_datetime", lambda **_: at):
        signer = botocore.auth.SigV4Auth(
            Credentials("AKIDEXAMPLE0000001", secret, token), service, region
        )
        signer.add_auth(request)

    keys = AwsKeys("AKIDEXAMPLE0000001", Secret(secret), None if token is None else Secret(token))
    scope = SignedFor(service, region, at.replace(tzinfo=UTC))
    mine = sign_post(keys, scope, host, body, "a/b", more)

    assert mine["authorization"] == request.headers["Authorization"]
