import asyncio
import errno
from pathlib import Path

import pytest

from exclave.base.errors import Problem
from exclave.base.ids import SeededRandomness
from exclave.client.problems import RemoteProblem, Unreachable
from exclave.runner.control_plane.access_token import IdentityRefused, Session
from exclave.runner.control_plane.identity import (
    AlreadyEnrolled,
    NotEnrolled,
    enrol,
    load_identity,
    load_key,
)
from exclave.runner.data_folder import DataFolder
from exclave.wire.jobs import JobKind
from exclave.wire.runner import AskToken, TokenReply
from tests.support.virtual_time import VirtualClock, run_virtual
from tests.unit.runner.fake_control import FakeControl
from tests.unit.runner.harness import TOKEN


class Desk:
    """A runner's identity and the control plane that gave it."""

    def __init__(self, folder: Path, control: FakeControl) -> None:
        self.control = control
        self.folder = folder / "data"
        self.disk = DataFolder(self.folder)

    async def enrol(self) -> None:
        await enrol(
            self.disk,
            self.control,
            token=TOKEN,
            name="r",
            capabilities=(JobKind.NOOP,),
            randomness=SeededRandomness(3),
        )

    def open(self) -> Session:
        return Session(
            self.control,
            self.disk,
            load_identity(self.folder),
            load_key(self.folder),
            clock=self.control.clock,
            randomness=SeededRandomness(5),
        )


async def use(session: Session, control: FakeControl) -> str:
    async def send(token: str) -> str:
        await control._travel("use", token)
        return token

    return await session.call(send)


def at_desk(folder: Path, scenario: object, control_type: type[FakeControl] = FakeControl) -> None:
    async def main() -> None:
        desk = Desk(folder, control_type(VirtualClock()))
        await desk.enrol()
        await scenario(desk)  # type: ignore[operator]

    run_virtual(main())


def test_enrolment_keeps_key_and_identity_private_and_is_done_once(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        for name in ("identity.key", "identity.json"):
            assert (desk.folder / name).stat().st_mode & 0o777 == 0o600
        assert desk.folder.stat().st_mode & 0o777 == 0o700
        with pytest.raises(AlreadyEnrolled):
            await desk.enrol()

    at_desk(tmp_path, scenario)


def test_a_lost_enrolment_reply_is_repeated_with_the_same_key(tmp_path: Path) -> None:
    async def main() -> None:
        desk = Desk(tmp_path, FakeControl(VirtualClock()))
        desk.control.lose_replies["enrol"] = 1
        with pytest.raises(Unreachable):
            await desk.enrol()
        shown = desk.control.public_key
        with pytest.raises(NotEnrolled):
            load_identity(desk.folder)

        await desk.enrol()

        assert desk.control.public_key == shown

    run_virtual(main())


def test_many_callers_share_one_token_and_it_is_replaced_before_it_ends(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        session = desk.open()

        tokens = await asyncio.gather(*(use(session, desk.control) for _ in range(20)))
        assert len(set(tokens)) == 1
        asked: list[int] = []
        for _ in range(900):
            await use(session, desk.control)
            asked.append(desk.control.calls["ask_token"])
            await desk.control.clock.sleep(1)

        assert asked[-1] == 2
        assert 440 < asked.index(2) < 680

    at_desk(tmp_path, scenario)


def test_the_nonce_for_the_next_token_came_with_the_last_one(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        for _ in range(3):
            await use(desk.open(), desk.control)

        assert (desk.control.calls["ask_token"], desk.control.calls["ask_nonce"]) == (3, 1)

    at_desk(tmp_path, scenario)


def test_a_nonce_that_came_too_early_is_replaced(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        session = desk.open()
        for _ in range(7):
            await use(session, desk.control)
            desk.control.nonces.clear()
            await desk.control.clock.sleep(1000)

        assert desk.control.calls["ask_nonce"] == 7
        assert desk.control.locked == ""

    at_desk(tmp_path, scenario)


def test_a_token_that_is_refused_is_replaced_once(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        session = desk.open()
        first = await use(session, desk.control)
        desk.control.tokens.clear()

        assert await use(session, desk.control) != first

    at_desk(tmp_path, scenario)


def test_a_lost_token_reply_does_not_look_like_a_clone(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        session = desk.open()
        desk.control.lose_replies["ask_token"] = 3
        for _ in range(3):
            with pytest.raises(Unreachable):
                await use(session, desk.control)

        await use(session, desk.control)
        desk.control.tokens.clear()
        await use(session, desk.control)

        assert desk.control.locked == ""

    at_desk(tmp_path, scenario)


def test_a_crash_between_reply_and_use_does_not_look_like_a_clone(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        desk.control.lose_replies["ask_token"] = 1
        with pytest.raises(Unreachable):
            await use(desk.open(), desk.control)

        await use(desk.open(), desk.control)
        await use(desk.open(), desk.control)

        assert desk.control.locked == ""

    at_desk(tmp_path, scenario)


def test_tokens_that_a_full_disk_refused_do_not_look_like_a_clone_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(disk: DataFolder, file: Path, data: bytes) -> None:
        if b'"pending_nonce":null' not in data:
            raise OSError(errno.ENOSPC, "the disk is full")
        keep(disk, file, data)

    keep = DataFolder.write

    async def scenario(desk: Desk) -> None:
        await use(desk.open(), desk.control)
        session = desk.open()
        monkeypatch.setattr(DataFolder, "write", write)
        for _ in range(3):
            with pytest.raises(OSError, match="full"):
                await use(session, desk.control)
        monkeypatch.undo()

        await use(desk.open(), desk.control)

        assert desk.control.locked == ""

    at_desk(tmp_path, scenario)


class LateCopies(FakeControl):
    """Delivers a copy of the first token request long after everything else."""

    held: AskToken | None = None

    async def ask_token(self, request: AskToken) -> TokenReply:
        if self.held is None:
            self.held = request
            raise Unreachable("stuck on the way", cause="timeout")
        return await super().ask_token(request)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_late_copy_of_a_token_request_does_not_look_like_a_clone(
    tmp_path: Path, *, restarted: bool
) -> None:
    async def scenario(desk: Desk) -> None:
        control = desk.control
        assert isinstance(control, LateCopies)
        session = desk.open()
        with pytest.raises(Unreachable):
            await use(session, control)
        session = desk.open() if restarted else session
        await use(session, control)

        assert control.held is not None
        with pytest.raises(RemoteProblem):
            await control.ask_token(control.held)

        assert control.locked == ""

    at_desk(tmp_path, scenario, LateCopies)


def test_a_copied_identity_locks_the_runner_with_a_clear_problem(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        stolen = desk.open()
        session = desk.open()
        await use(session, desk.control)
        desk.control.tokens.clear()
        await use(session, desk.control)
        stolen.identity = stolen.identity.model_copy(update={"generation": 1})

        with pytest.raises(IdentityRefused):
            await use(stolen, desk.control)
        with pytest.raises(IdentityRefused):
            await use(session, desk.control)

    at_desk(tmp_path, scenario)


class Forgetful(FakeControl):
    """Knows nobody."""

    async def ask_token(self, request: AskToken) -> TokenReply:
        raise RemoteProblem(401, "unauthenticated", "the runner is unknown")


def test_an_identity_that_is_refused_again_and_again_is_given_up(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        session = desk.open()
        problems: list[Problem] = []
        for _ in range(5):
            try:
                await use(session, desk.control)
            except Problem as problem:
                problems.append(problem)

        assert isinstance(problems[-1], IdentityRefused)
        assert not any(isinstance(one, IdentityRefused) for one in problems[:-1])

    at_desk(tmp_path, scenario, Forgetful)
