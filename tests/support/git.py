"""Real git repositories for tests, and a server for them over HTTP."""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

_IDENTITY = {
    "GIT_AUTHOR_NAME": "dev",
    "GIT_AUTHOR_EMAIL": "dev@example.com",
    "GIT_COMMITTER_NAME": "dev",
    "GIT_COMMITTER_EMAIL": "dev@example.com",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository with a work tree."""

    path: Path

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    def git(self, *args: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.path), **_IDENTITY}
        done = subprocess.run(
            ["git", *args], cwd=self.path, env=env, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, bytes | str], message: str = "change") -> str:
        """Write files, commit them and return the commit."""
        for name, content in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


def make_repo(path: Path, files: Mapping[str, bytes | str] | None = None) -> Repo:
    """Make a repository with a branch `main`."""
    path.mkdir(parents=True)
    repo = Repo(path)
    repo.git("init", "--quiet", "--initial-branch=main")
    repo.commit(files or {})
    return repo


@dataclass(slots=True)
class GitServer:
    """A running server: its URL and the requests that it received."""

    root: Path
    port: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Path and Authorization header of each request."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serve_git(root: Path, user: str = "git", password: str = "tok-s3cret") -> Iterator[GitServer]:
    """Serve the repositories below a folder by `git http-backend`; `private*` needs the password.

    `moved*` redirects, `broken*` answers 503.
    """
    server = GitServer(root)
    wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    class Handler(_Handler):
        kit: ClassVar[GitServer] = server
        secret: ClassVar[str] = wanted

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.port = http.server_address[1]
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    kit: ClassVar[GitServer]
    secret: ClassVar[str]

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._serve(self.rfile.read(length))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Keep quiet."""

    def _serve(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        self.kit.requests.append((path, self.headers.get("Authorization", "")))
        if path.startswith("/private") and self.headers.get("Authorization") != self.secret:
            self._answer(401, {"WWW-Authenticate": 'Basic realm="git"'})
        elif path.startswith("/moved"):
            self._answer(301, {"Location": self.path.replace("/moved", "/public")})
        elif path.startswith("/broken"):
            self._answer(503, {})
        else:
            self._run_backend(path, query, body)

    def _run_backend(self, path: str, query: str, body: bytes) -> None:
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.kit.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "REMOTE_ADDR": "127.0.0.1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=env, capture_output=True, check=False
        )
        head, _, data = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        status = int(headers.pop("Status", "200").split()[0])
        self._answer(status, headers, data)

    def _answer(self, status: int, headers: Mapping[str, str], data: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
