"""A real SSH server on loopback that serves git repositories to one key."""

import asyncio
import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from subprocess import PIPE
from typing import Any

import asyncssh


def make_key() -> asyncssh.SSHKey:
    """Return a new key pair for a server or a client."""
    return asyncssh.generate_private_key("ssh-ed25519")


def write_private(key: asyncssh.SSHKey) -> str:
    """Return a private key in its file format."""
    return key.export_private_key().decode()


@dataclass
class SshServer:
    """The address and the key of a running server."""

    port: int
    host_key: asyncssh.SSHKey
    commands: list[str] = field(default_factory=list)
    """What clients that were let in asked for."""

    @property
    def url(self) -> str:
        return f"ssh://git@127.0.0.1:{self.port}"

    def known_hosts_line(self, key: asyncssh.SSHKey | None = None) -> str:
        """Return the `known_hosts` line that `ssh-keyscan` prints."""
        public = (key or self.host_key).export_public_key().decode()
        return f"[127.0.0.1]:{self.port} {public}"


@asynccontextmanager
async def serve_ssh(client: asyncssh.SSHKey) -> AsyncIterator[SshServer]:
    """Serve every repository of this machine to the holder of a key, to read only."""
    made = SshServer(0, make_key())

    async def handle(process: "asyncssh.SSHServerProcess[bytes]") -> None:
        made.commands.append(process.command or "")
        words = shlex.split(process.command or "")
        if words[:1] != ["git-upload-pack"]:
            process.exit(127)
            return
        env = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
        env |= {name: text for name, text in process.env.items() if name == "GIT_PROTOCOL"}
        child = await asyncio.create_subprocess_exec(
            "git",
            "-c",
            "safe.directory=*",
            "upload-pack",
            words[1],
            env=env,
            stdin=PIPE,
            stdout=PIPE,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        asking = asyncio.create_task(_copy(process.stdin, child.stdin))
        await _copy(child.stdout, process.stdout)
        process.exit(await child.wait())
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    allowed = asyncssh.import_authorized_keys(client.export_public_key().decode())
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[made.host_key],
        authorized_client_keys=allowed,
        process_factory=handle,
        encoding=None,
    )
    made.port = server.get_port()
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()


async def _copy(source: Any, target: Any) -> None:
    while data := await source.read(65536):
        target.write(data)
        await target.drain()
    target.write_eof()
