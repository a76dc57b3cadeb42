"""Recorded answers of clouds to programs on their machines."""

from tests.support.scripted_api import Reply, say

_ROLES = "/latest/meta-data/iam/security-credentials"
AWS_MACHINE = {
    "/latest/api/token": [Reply(200, b"session")],
    f"{_ROLES}/": [Reply(200, b"runner-role\n")],
    f"{_ROLES}/runner-role": [say({"AccessKeyId": "AK", "SecretAccessKey": "SK", "Token": "TOK"})],
}
"""The metadata of a machine of AWS that has a role."""
