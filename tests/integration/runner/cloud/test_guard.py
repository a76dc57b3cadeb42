"""Whether users of jobs can reach the metadata server of their machine, tried for real."""

import asyncio
import os
import sys

import pytest

from exclave.runner.cloud.guard import GUARD_RULES, find_open_metadata
from exclave.runner.processes.users import JobUser

USER = JobUser(60613, 60613, alone=True)
is_root = sys.platform == "linux" and os.geteuid() == 0


@pytest.mark.skipif(not is_root, reason="only root can start jobs as others")
async def test_an_open_address_is_found_and_a_closed_one_is_fine() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    opened = await find_open_metadata([USER], [("127.0.0.1", 1), ("127.0.0.1", port)])
    server.close()
    await server.wait_closed()

    closed = await find_open_metadata([USER], [("127.0.0.1", port)])

    assert opened.startswith(f"jobs can reach the metadata server at 127.0.0.1:{port}")
    assert closed == ""


async def test_jobs_that_are_the_runner_itself_can_act_as_the_machine() -> None:
    assert "set EXCLAVE_RUN_AS" in await find_open_metadata([])


def test_the_rules_let_root_and_the_resolver_through_and_nobody_else() -> None:
    lines = [line.strip() for line in GUARD_RULES.splitlines()]

    assert lines.index("meta skuid 0 accept") < lines.index(
        "ip daddr { 168.63.129.16, 169.254.170.2 } counter reject with icmpx admin-prohibited"
    )
    assert any("169.254.169.254" in line and "th dport != 53" in line for line in lines)
    assert GUARD_RULES.count("{") == GUARD_RULES.count("}")
