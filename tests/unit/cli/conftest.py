"""Running the real command line in this process, against a control plane of prepared answers."""

import io
from collections.abc import Mapping
from pathlib import Path

import pytest

from exclave.cli.deps import Deps
from exclave.cli.root import build_root, run
from tests.unit.cli.fake_control import TOKEN, URL, Cli, FakeControl, Ran


@pytest.fixture
def fake() -> FakeControl:
    return FakeControl()


@pytest.fixture
def cli(
    fake: FakeControl,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Cli:
    def call(
        *argv: str,
        can_ask: bool = False,
        terminal: bool = False,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
    ) -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        given = {"EXCLAVE_URL": URL, "EXCLAVE_TOKEN": TOKEN} if env is None else dict(env)
        deps = Deps(
            env={"HOME": str(tmp_path)} | given,
            cwd=tmp_path,
            clock=fake.clock,
            ids=fake.ids,
            can_ask=can_ask,
            is_terminal=terminal,
            transport=fake.transport,
        )
        code = run(build_root(), argv, deps)
        told = capsys.readouterr()
        return Ran(code, told.out, told.err)

    return call
