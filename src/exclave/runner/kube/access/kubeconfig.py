"""Read a kubeconfig: which server, which certificates, which credential. Nothing is sent here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exclave.base.errors import Problem
from exclave.base.json_values import (
    Json,
    JsonObject,
    list_or_empty,
    object_or_empty,
    text_or_empty,
)
from exclave.base.secrets import Secret
from exclave.runner.kube.access.tls import decode_pem
from exclave.runner.kube.api.errors import AccessRefused
from exclave.runner.kube.api.yaml_reader import read_document

MAX_KUBECONFIG: Final = 1 << 20
_LOOPBACK: Final = ("http://127.0.0.1", "http://localhost", "http://[::1]")


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A command that prints a token."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    api_version: str
    wants_cluster: bool
    hint: str


@dataclass(frozen=True, slots=True)
class KubeContext:
    """One context of a kubeconfig, with its files read."""

    server: str
    ca_pem: str
    proxy: str | None = None
    tls_name: str | None = None
    client: tuple[str, Secret] | None = None
    token: Secret | None = None
    token_file: Path | None = None
    plugin: ExecPlugin | None = None


def read_kubeconfig_file(path: Path, context: str = "") -> KubeContext:
    """Return a context of a file; the current one if none is named."""
    try:
        with path.open("rb") as opened:
            data = opened.read(MAX_KUBECONFIG + 1)
    except OSError as error:
        raise AccessRefused(f"the kubeconfig `{path}` cannot be read: {error.strerror}") from error
    if len(data) > MAX_KUBECONFIG:
        raise AccessRefused(f"the kubeconfig `{path}` is larger than {MAX_KUBECONFIG >> 20} MiB")
    return _read(data.decode(errors="replace"), f"the kubeconfig `{path}`", context, path.parent)


def read_inline_kubeconfig(text: str) -> KubeContext:
    """Return the current context of a text that is an output of a component.

    It may name no file and no command: both would be those of the runner's machine.
    """
    return _read(text, "the kubeconfig of the output", "", None)


def _read(text: str, what: str, wanted: str, folder: Path | None) -> KubeContext:
    try:
        document = object_or_empty(read_document(text))
    except Problem as problem:
        raise AccessRefused(f"{what} cannot be read: {problem.message}") from problem
    name = wanted or text_or_empty(document.get("current-context"))
    if not name:
        raise AccessRefused(f"{what} has no current context: name one, as FILE:CONTEXT")
    chosen = _find(document.get("contexts"), "context", name, what)
    cluster = _find(document.get("clusters"), "cluster", text_or_empty(chosen.get("cluster")), what)
    user_name = text_or_empty(chosen.get("user"))
    user = _find(document.get("users"), "user", user_name, what) if user_name else {}
    return _Reader(what, folder, cluster, user).read()


@dataclass(frozen=True, slots=True)
class _Reader:
    what: str
    folder: Path | None
    cluster: JsonObject
    user: JsonObject

    def read(self) -> KubeContext:
        for refused in ("username", "password", "auth-provider", "as", "as-groups", "as-uid"):
            if self.user.get(refused):
                raise AccessRefused(f"{self.what} uses `{refused}`, which runners do not support")
        if self.cluster.get("insecure-skip-tls-verify"):
            message = f"{self.what} turns the check of the server's certificate off"
            hint = "Remove insecure-skip-tls-verify and add certificate-authority-data."
            raise AccessRefused(message, hint=hint)
        certificate = self._read_data("client-certificate", self.user)
        key = self._read_data("client-key", self.user)
        token = text_or_empty(self.user.get("token"))
        return KubeContext(
            server=self._read_server(),
            ca_pem=self._read_data("certificate-authority", self.cluster),
            proxy=text_or_empty(self.cluster.get("proxy-url")) or None,
            tls_name=text_or_empty(self.cluster.get("tls-server-name")) or None,
            client=(certificate, Secret(key)) if certificate and key else None,
            token=Secret(token) if token else None,
            token_file=self._find_file("tokenFile", self.user),
            plugin=self._read_plugin(),
        )

    def _read_server(self) -> str:
        server = text_or_empty(self.cluster.get("server")).rstrip("/")
        if not server.startswith("https://") and not server.startswith(_LOOPBACK):
            raise AccessRefused(f"{self.what} names the server `{server}`: it has to use https://")
        return server

    def _read_data(self, key: str, entry: JsonObject) -> str:
        """Return the PEM under `key` (a file) or `key-data` (base64), which wins."""
        data = text_or_empty(entry.get(f"{key}-data"))
        if data:
            return decode_pem(data, f"`{key}-data` of {self.what}")
        file = self._find_file(key, entry)
        if file is None:
            return ""
        try:
            with file.open("rb") as opened:
                return opened.read(MAX_KUBECONFIG).decode("ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise AccessRefused(f"`{key}` of {self.what} cannot be read: {error}") from error

    def _find_file(self, key: str, entry: JsonObject) -> Path | None:
        name = text_or_empty(entry.get(key))
        if not name:
            return None
        if self.folder is None:
            raise AccessRefused(
                f"{self.what} names the file `{name}` in `{key}`: write its content"
            )
        return self.folder / name

    def _read_plugin(self) -> ExecPlugin | None:
        entry = object_or_empty(self.user.get("exec"))
        if not entry:
            return None
        if self.folder is None:
            raise AccessRefused(f"{self.what} starts a command: runners start none for outputs")
        command = text_or_empty(entry.get("command"))
        if "/" in command:
            command = str(self.folder / command)
        env = [object_or_empty(pair) for pair in list_or_empty(entry.get("env"))]
        return ExecPlugin(
            argv=(command, *(str(word) for word in list_or_empty(entry.get("args")))),
            env=tuple((text_or_empty(p.get("name")), text_or_empty(p.get("value"))) for p in env),
            api_version=text_or_empty(entry.get("apiVersion")),
            wants_cluster=entry.get("provideClusterInfo") is True,
            hint=text_or_empty(entry.get("installHint")),
        )


def _find(entries: Json, kind: str, name: str, what: str) -> JsonObject:
    for entry in list_or_empty(entries):
        named = object_or_empty(entry)
        if named.get("name") == name:
            return object_or_empty(named.get(kind))
    raise AccessRefused(f"{what} has no {kind} `{name}`")
