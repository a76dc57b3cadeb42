"""Whose socket it is: the kernel's answer, with real users."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from exclave.runner.cloud import peers
from exclave.runner.cloud.peers import Address, find_peer_uid
from exclave.runner.jobs.workspace import prepare_workspace
from exclave.runner.processes.cell import Cell
from exclave.runner.processes.users import JobUser
from tests.unit.runner.cloud.cloud_kit import WISH, Site, make_dispatch

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can start jobs as others"
)
JOB, NEIGHBOUR = 60611, 60612
SHELL = "/bin/bash"
"""A program that other users can run too; that of the tests may be in a closed folder."""
CONNECT = "exec 3<>/dev/tcp/127.0.0.1/$1; echo connected; read -r"
ASK = """
exec 3<>/dev/tcp/127.0.0.1/$1
printf 'GET %s HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: %s\\r\\n\\r\\n' "$2" "$3" >&3
read -r _ status _ <&3
echo "$status"
"""


@asynccontextmanager
async def connect_as(uid: int, port: int) -> AsyncIterator[None]:
    argv = [SHELL, "-c", CONNECT, "connect", str(port)]
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *argv, user=uid, group=uid, extra_groups=[], stdin=pipe, stdout=pipe
    )
    assert child.stdout is not None
    await child.stdout.readline()
    yield
    await child.communicate(b"\n")


@pytest.mark.parametrize("way", ["netlink", "table"])
async def test_the_owner_of_a_socket_is_found(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "table":
        monkeypatch.setattr(peers, "_SOCK_DIAG", 99)
    else:
        monkeypatch.setattr(peers, "_TABLE", Path("/nowhere"))
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    server = await asyncio.start_server(
        lambda _, writer: accepted.put_nowait(writer), "127.0.0.1", 0
    )
    address: Address = server.sockets[0].getsockname()

    async with connect_as(JOB, address[1]), connect_as(NEIGHBOUR, address[1]):
        writers = [await accepted.get(), await accepted.get()]
        found = {find_peer_uid(each.get_extra_info("peername"), address) for each in writers}
        unknown = find_peer_uid(("127.0.0.1", 1), address)
        for writer in writers:
            writer.close()
            await writer.wait_closed()
    server.close()

    assert found == {JOB, NEIGHBOUR}
    assert unknown is None


async def ask_as(uid: int, url: str, token: str) -> str:
    parts = urlsplit(url)
    argv = [SHELL, "-c", ASK, "ask", str(parts.port), parts.path, token]
    child = await asyncio.create_subprocess_exec(
        *argv, user=uid, group=uid, extra_groups=[], stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    return output.decode().strip()


def open_folders(folder: Path) -> None:
    """Let other users pass through folders of the tests, as through those of a runner."""
    for parent in (folder, *folder.parents):
        if parent.owner() == "root" and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)


def read(file: Path) -> str:
    return file.read_text()


def look_at(file: Path) -> os.stat_result:
    return file.stat()


async def test_a_stolen_address_and_token_are_worth_nothing_to_another_user(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    user = JobUser(JOB, JOB, alone=True)
    folder = tmp_path / "execution"
    folder.mkdir()
    dispatch = make_dispatch(dict(WISH))

    async with site.identities.open(dispatch, Cell(user), site.log, lambda: False) as identity:
        assert identity is not None
        open_folders(folder)
        env = identity.prepare(prepare_workspace(folder, user, keep_free_bytes=0))
        file = Path(env["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"])
        url, token = env["AWS_CONTAINER_CREDENTIALS_FULL_URI"], read(file)
        replies = [await ask_as(uid, url, token) for uid in (JOB, NEIGHBOUR, 0, JOB)]
        owner = look_at(file)

    assert replies == ["200", "403", "403", "200"]
    assert (owner.st_uid, owner.st_mode & 0o777) == (JOB, 0o400)
    (refusal,) = site.read_events("credential_refused")
    assert refusal["uid"] == NEIGHBOUR
    assert len(site.account.sessions) == 1
