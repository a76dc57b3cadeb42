"""Which of the two APIs a process serves."""

from pathlib import Path

import pytest

from exclave.base.errors import InvalidInput
from exclave.main.server import _open_sockets
from exclave.main.settings import ServerSettings

POSTGRES = "postgresql+psycopg://u@h/d"


@pytest.mark.parametrize(
    ("serve", "apis"),
    [("all", ["control", "runner"]), ("control", ["control"]), ("runner", ["runner"])],
)
def test_a_process_listens_for_what_it_serves(serve: str, apis: list[str], tmp_path: Path) -> None:
    settings = ServerSettings.model_validate(
        {
            "data": tmp_path,
            "database": POSTGRES,
            "serve": serve,
            "control_port": 0,
            "runner_port": 0,
        }
    )

    sockets = _open_sockets(settings)

    assert list(sockets) == apis
    for each in sockets.values():
        each.close()


def test_one_api_alone_needs_a_database_that_processes_share(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="PostgreSQL"):
        _open_sockets(ServerSettings(data=tmp_path, serve="control"))
