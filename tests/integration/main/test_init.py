"""`exclave server init` as an operator runs it: a process on an empty data folder."""

import asyncio
import json
import subprocess
from pathlib import Path

from exclave.control.access import authenticate_user
from exclave.main.composition import build_deps
from exclave.main.settings import ServerSettings
from tests.faults.site import clean_env, exclave


def test_the_token_of_a_new_org_opens_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    argv = [*exclave(), "server", "--data", str(data), "init", "acme", "--admin", "alice", "--json"]

    made = json.loads(subprocess.check_output(argv, env=clean_env({})))

    deps = build_deps(ServerSettings(data=data))
    try:
        user = asyncio.run(authenticate_user(deps, made["token"]))
    finally:
        deps.db.close()
    assert (user.org, user.name) == (made["id"], "alice")
