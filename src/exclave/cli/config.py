"""The login of a command: from the environment, the stored login, or a dev folder."""

import errno
import json
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from exclave.base.addresses import is_loopback
from exclave.base.errors import InvalidInput, Kind, Problem
from exclave.base.secrets import Secret

DEFAULT_URL = "http://127.0.0.1:8700"
DEV_FILE = Path(".exclave") / "dev.json"
_MOST_BYTES = 64 << 10


class NotLoggedIn(Problem):
    """There is no token for the server."""

    kind: ClassVar = Kind.UNAUTHENTICATED
    code: ClassVar = "not_logged_in"
    hint: ClassVar = (
        "Run `exclave auth login`, set EXCLAVE_URL and EXCLAVE_TOKEN,"
        " or start `exclave dev` in this folder."
    )


@dataclass(frozen=True, slots=True)
class Login:
    """A server, a token for it, and where they were found."""

    url: str
    token: Secret
    source: str


def find_login(env: Mapping[str, str], cwd: Path) -> Login:
    """Return the login: from the environment, else the stored one, else that of a dev folder.

    A token is only sent to the address that it was created or stored for. EXCLAVE_TOKEN is never
    sent to the address in a file of the current folder, which may be somebody else's repository.
    """
    url, token = env.get("EXCLAVE_URL", "").rstrip("/"), env.get("EXCLAVE_TOKEN", "")
    if url and token:
        return Login(url, Secret(token), "environment")
    stored = _read_stored(find_config_file(env))
    dev_file = cwd / DEV_FILE
    if token:
        return Login(_choose_server(stored, dev_file), Secret(token), "environment")
    if stored is not None and url in {"", stored.url}:
        return stored
    dev = _read_dev_file(dev_file)
    if dev is not None and url in {"", dev.url}:
        return dev
    if url:
        raise NotLoggedIn(f"EXCLAVE_URL is {url}, but there is no token for it")
    raise NotLoggedIn("not logged in to any server")


def find_config_file(env: Mapping[str, str]) -> Path:
    """Return the file in which the login is stored."""
    if env.get("EXCLAVE_CONFIG"):
        return Path(env["EXCLAVE_CONFIG"])
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    folder = Path(env["XDG_CONFIG_HOME"]) if env.get("XDG_CONFIG_HOME") else home / ".config"
    return folder / "exclave" / "config.toml"


def store_login(file: Path, url: str, token: Secret) -> None:
    """Store the login atomically, readable only by this user."""
    text = f"url = {json.dumps(url.rstrip('/'))}\ntoken = {json.dumps(token.reveal())}\n"
    fresh = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        fresh.replace(file)
    except OSError as error:
        raise InvalidInput(
            f"cannot write {file}: {error.strerror}", hint="Set EXCLAVE_CONFIG to another file."
        ) from error


def _read_stored(file: Path) -> Login | None:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _blame(file, error) from error
    return _read_login(document.get("url"), document.get("token"), file)


def _choose_server(stored: Login | None, dev_file: Path) -> str:
    """Return the server for EXCLAVE_TOKEN when EXCLAVE_URL is not set."""
    if stored is not None:
        return stored.url
    if os.path.lexists(dev_file):
        raise InvalidInput(
            f"EXCLAVE_TOKEN is set without EXCLAVE_URL; it is not sent to the server in {dev_file}",
            hint="Set EXCLAVE_URL too, or unset EXCLAVE_TOKEN to use the login in that file.",
        )
    return DEFAULT_URL


def _read_dev_file(file: Path) -> Login | None:
    """Return the login that `exclave dev` wrote; refuse a file that others could have written."""
    try:
        document = json.loads(_read_own_file(file))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _blame(file, error) from error
    fields = document if isinstance(document, dict) else {}
    login = _read_login(fields.get("control_url"), fields.get("token"), file)
    if not is_loopback(_find_host(login.url)):
        raise _refuse(file, f"its URL {login.url} is not on this machine")
    return login


def _read_own_file(file: Path) -> str:
    """Return a small file that only this user can read and write."""
    try:
        # Non-blocking, so that a pipe of this name cannot block the command.
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK}:
            raise _refuse(file, "it is a symbolic link") from error
        raise
    with os.fdopen(handle, encoding="utf-8") as opened:
        facts = os.fstat(opened.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise _refuse(file, "it is not a regular file")
        if facts.st_uid != os.geteuid():
            raise _refuse(file, f"it belongs to another user (uid {facts.st_uid})")
        if facts.st_mode & 0o077:
            mode = stat.S_IMODE(facts.st_mode)
            raise _refuse(file, f"other users have rights on it (mode {mode:04o}, not 0600)")
        return opened.read(_MOST_BYTES)


def _find_host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _refuse(file: Path, why: str) -> NotLoggedIn:
    return NotLoggedIn(
        f"the login in {file} is not used: {why}",
        hint="`exclave dev` writes this file again when it starts. Or run `exclave auth login`.",
    )


def _read_login(url: object, token: object, file: Path) -> Login:
    if not isinstance(url, str) or not isinstance(token, str):
        raise _blame(file, ValueError("it has no URL or no token"))
    return Login(url.rstrip("/"), Secret(token), str(file))


def _blame(file: Path, error: Exception) -> InvalidInput:
    return InvalidInput(
        f"cannot use {file}: {error}", hint="Run `exclave auth login` again, or remove the file."
    )
