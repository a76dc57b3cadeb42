"""Find installs on which the caller has a right."""

from exclave.base.errors import Conflict, NotFound
from exclave.control.access import require_on
from exclave.domain.identity import Right, User
from exclave.domain.installs import AppInstall, Install
from exclave.storage import installs
from exclave.storage.engine.database import Tx


def get_install(tx: Tx, user: User, install: str, right: Right, *, lock: bool = False) -> Install:
    """Return an install on which the user has a right."""
    row = installs.find_install(tx, user.org, install, lock=lock)
    if row is None:
        raise NotFound("there is no such install")
    require_on(tx, user, right, install, noun="install")
    return row


def get_app_install(
    tx: Tx, user: User, install: str, right: Right, *, lock: bool = False
) -> AppInstall:
    """Return an install of an app on which the user has a right."""
    row = get_install(tx, user, install, right, lock=lock)
    if not isinstance(row, AppInstall):
        raise Conflict(
            "this install runs no app", hint="Create one with `exclave installs create APP`."
        )
    return row
