"""A registry that is not ours, the CNCF one, as a process of its own."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.faults.site import find_port
from tests.support.tools import need_tool

USERNAME = "runner"
PASSWORD = "s3cret"
_HASH = "$2b$05$abcdefghijklmnopqrstuuLK7U1u6pVRmL7L1BBM2aS35PSZnDXlK"
_CONFIG = """
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/store}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}"}}
validation: {{manifests: {{urls: {{allow: ["^https://example"]}}}}}}
"""
_LOGIN = "auth: {{htpasswd: {{realm: test, path: {folder}/passwords}}}}\n"


@contextmanager
def serve_registry(folder: Path, *, login: bool = False) -> Iterator[str]:
    """Start a registry and yield its address; with `login`, it wants `USERNAME` and `PASSWORD`."""
    program = need_tool("registry")
    port = find_port()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "passwords").write_text(f"{USERNAME}:{_HASH}\n")
    config = folder / "config.yml"
    text = _CONFIG + (_LOGIN if login else "")
    config.write_text(text.format(folder=folder, port=port))
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen([program, "serve", config], stdout=log, stderr=log) as server,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url, server)
            yield url
        finally:
            server.kill()


def _wait_for(url: str, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(600):
        assert server.poll() is None, "the registry ended"
        try:
            httpx.get(f"{url}/v2/", trust_env=False)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the registry does not answer")
