"""A runner in an emulated AWS account: roles that last one job, and the customer's kill switch."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator

import pytest

from exclave.runner.secrets.sealing import SEAL_KEY
from tests.e2e.cloud_site import OTHER, ROLE, CloudSite, open_cloud_site

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can start jobs as others"
)
ASK = """
uri=${AWS_CONTAINER_CREDENTIALS_FULL_URI#http://127.0.0.1:}
exec 3<>/dev/tcp/127.0.0.1/${uri%%/*}
printf 'GET /%s HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: %s\\r\\n\\r\\n' \\
  "${uri#*/}" "$(cat "$AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")" >&3
read -r _ status _ <&3
echo "status=$status"
"""
"""Asks the endpoint of the job for credentials, as an SDK does."""
SHELL = "exec /bin/bash -eu -c '{script}'"


def in_bash(script: str) -> str:
    quoted = script.replace("'", "'\\''")
    return SHELL.replace("{script}", quoted)


@pytest.fixture
async def site() -> AsyncIterator[CloudSite]:
    async with open_cloud_site() as opened:
        yield opened


async def test_a_job_gets_the_credentials_of_its_role_and_of_no_other(site: CloudSite) -> None:
    done = await site.run(in_bash(f'{ASK}[ "$status" = 200 ]'))
    off = await site.run("true", role=OTHER)
    unknown = await site.run("true", role="somebody")

    assert done.state == "succeeded", done.message + site.read_log()
    assert (off.reason, unknown.reason) == ("role_disabled", "role_unknown")
    assert "EnableAdminRole=true" in off.message
    (issued,) = site.read_audit("credential_issued")
    assert issued["role"] == ROLE
    assert issued["job_id"] == done.id
    assert (site.folder / "runner" / SEAL_KEY).exists()


async def test_where_the_customer_lets_it_only_plan_changes_are_refused(site: CloudSite) -> None:
    first = await site.run("true")
    site.account.say(mode="plan-only")
    await asyncio.sleep(35)
    refused = await site.run("true")
    looked = await site.run("true", mutating=False)

    assert first.state == looked.state == "succeeded"
    assert refused.reason == "plan_only"


async def test_the_kill_switch_of_the_stack_stops_running_work(site: CloudSite) -> None:
    found = await site.start("trap 'exit 7' TERM; while :; do sleep 0.2; done")
    while not site.read_audit("job_started"):  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.1)
    began = time.monotonic()
    site.account.deny()

    ended = await site.wait_end(found)

    print(f"stopped {time.monotonic() - began:.1f} s after the customer denied everything")
    assert (ended.state, ended.reason) == ("cancelled", "disabled")
    assert site.read_audit("document_unreadable")
