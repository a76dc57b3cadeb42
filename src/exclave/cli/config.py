"""Which server to talk to, and with which token: environment, stored login, dev folder."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from exclave.base.errors import InvalidInput, Kind, Problem
from exclave.base.secrets import Secret

DEFAULT_URL = "http://127.0.0.1:8700"
DEV_FILE = Path(".exclave") / "dev.json"


class NotLoggedIn(Problem):
    """No token is known for the server."""

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
    """Choose a login: the environment wins, then the stored one, then a dev folder right here.

    A stored token is never sent to another address than the one it was stored for.
    """
    url, token = env.get("EXCLAVE_URL", "").rstrip("/"), env.get("EXCLAVE_TOKEN", "")
    if url and token:
        return Login(url, Secret(token), "environment")
    stored = [_read_stored(find_config_file(env)), _read_dev_file(cwd / DEV_FILE)]
    known = [login for login in stored if login is not None]
    if token:
        return Login(known[0].url if known else DEFAULT_URL, Secret(token), "environment")
    fitting = [login for login in known if url in {"", login.url}]
    if fitting:
        return fitting[0]
    if url:
        raise NotLoggedIn(f"EXCLAVE_URL is {url}, but there is no token for it")
    raise NotLoggedIn("not logged in to any server")


def find_config_file(env: Mapping[str, str]) -> Path:
    """Tell where the login is stored."""
    if env.get("EXCLAVE_CONFIG"):
        return Path(env["EXCLAVE_CONFIG"])
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    folder = Path(env["XDG_CONFIG_HOME"]) if env.get("XDG_CONFIG_HOME") else home / ".config"
    return folder / "exclave" / "config.toml"


def store_login(file: Path, url: str, token: Secret) -> None:
    """Write the login so that nobody else on this machine can read it, and all of it or nothing."""
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
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _blame(file, error) from error
    return _read_login(found.get("url"), found.get("token"), file)


def _read_dev_file(file: Path) -> Login | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _blame(file, error) from error
    fields = found if isinstance(found, dict) else {}
    return _read_login(fields.get("control_url"), fields.get("token"), file)


def _read_login(url: object, token: object, file: Path) -> Login:
    if not isinstance(url, str) or not isinstance(token, str):
        raise _blame(file, ValueError("it lacks an address or a token"))
    return Login(url.rstrip("/"), Secret(token), str(file))


def _blame(file: Path, error: Exception) -> InvalidInput:
    return InvalidInput(
        f"cannot use {file}: {error}", hint="Run `exclave auth login` again, or remove the file."
    )
