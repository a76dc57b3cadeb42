"""When a runner looks for another program, what it refuses, and when it reboots its machine."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from exclave.base.digests import canonical_json
from exclave.client.problems import RemoteProblem
from exclave.client.transport import Link
from exclave.runner.cloud.document import CloudDocument, ProgramPin
from exclave.runner.cloud.program_folders import ProgramFolders, ProgramWrong
from exclave.runner.executions.deps import Deps
from exclave.runner.loops.reboot_watch import watch_reboot
from exclave.runner.loops.update_watch import LOOK_EVERY_S, UpdateWatch
from exclave.wire.envelope import sign_detached
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.stacks import (
    RELEASE_SIGNED,
    Leaving,
    ProgramOffer,
    Resigned,
    StackReport,
    StackTerms,
)
from tests.unit.runner.cloud.cloud_kit import read_document
from tests.unit.runner.harness import RunnerHarness, expect, run_scenario

T = TypeVar("T")
NEW = hashlib.sha256(b"new").hexdigest()


async def run_here(work: Callable[[], T], /) -> T:
    """Run work in the event loop, since virtual time knows no threads."""
    return work()


class Machine:
    """A machine with a program, and a control plane that offers another one."""

    def __init__(self, house: RunnerHarness, folder: Path, **document: Any) -> None:
        self.house = house
        self.document: CloudDocument = replace(read_document(), **document)
        self.folders = ProgramFolders(folder)
        (folder / "versions" / NEW[:16]).mkdir(parents=True)
        (folder / "versions" / "old").mkdir()
        (folder / "current").symlink_to("versions/old")
        self.next = folder / "next"
        self.version, self.kind = "2.0.0", RELEASE_SIGNED
        self.problem: RemoteProblem | None = None
        self.asked = 0
        self.kid = "k1"
        self.prepared: list[tuple[str, str]] = []
        self.refusal: ProgramWrong | None = None
        updates = UpdateWatch(self.folders, lambda: self.document, self, "x86_64", self, run_here)
        house.duties = [updates.run]

    async def prepare(self, link: Link, version: str, digest: str) -> None:
        del link
        if self.refusal is not None:
            raise self.refusal
        self.prepared.append((version, digest))

    async def ask_program(self, token: str) -> ProgramOffer:
        del token
        self.asked += 1
        if self.problem is not None:
            raise self.problem
        release = {"version": self.version, "x86_64": NEW, "aarch64": NEW}
        payload = canonical_json(release)
        control = self.house.control
        signature = sign_detached(control.key, self.kid, self.kind, payload)
        return ProgramOffer(release=payload.decode(), signature=signature)

    async def report(self, token: str, request: StackReport) -> StackTerms:
        raise NotImplementedError

    async def leave(self, token: str, request: Leaving) -> None:
        raise NotImplementedError

    async def resign(self, token: str) -> Resigned:
        raise NotImplementedError


def test_a_signed_program_is_tried_as_soon_as_no_job_runs(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.executor.lasts_s = 400.0
        machine = Machine(house, tmp_path / "opt")
        machine.problem = RemoteProblem(404, "not_found", "none yet")
        _, task = house.start()
        await house.clock.sleep(10)
        job = house.control.add_job()
        machine.problem = None
        await house.clock.sleep(LOOK_EVERY_S + 10)
        early = machine.next.is_symlink()
        await task

        assert not early
        expect(house.control.result_of(job), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        assert machine.next.readlink().name == NEW[:16]
        assert machine.prepared == [("2.0.0", NEW)]

    house = run_scenario(tmp_path, scenario)

    assert "update_begins" in house.audit_events()


@pytest.mark.parametrize("fault", ["kind", "key", "older", "failed", "current", "pinned", "starts"])
def test_a_program_that_should_not_run_is_not_tried(tmp_path: Path, fault: str) -> None:
    async def scenario(house: RunnerHarness) -> None:
        pin = ProgramPin("1.0.0", {"x86_64": "0ld" + "0" * 61})
        machine = Machine(house, tmp_path / "opt", program=pin)
        match fault:
            case "kind":
                machine.kind = "exclave-stack-file+jws"
            case "key":
                machine.kid = "k9"
            case "older":
                file = house.config.data / "program-version"
                file.parent.mkdir()
                file.write_text("10.0.0")
            case "failed":
                (tmp_path / "opt" / "failed").write_text(f'{{"program":"{NEW[:16]}","reason":"x"}}')
            case "current":
                (tmp_path / "opt" / "current").unlink()
                (tmp_path / "opt" / "current").symlink_to(f"versions/{NEW[:16]}")
            case "pinned":
                digests = {"aarch64": NEW}
                document = replace(machine.document, updates="pinned")
                machine.document = replace(document, program=ProgramPin("2.0.0", digests))
            case "starts":
                machine.refusal = ProgramWrong("the program does not start on this machine")
        runner, task = house.start()
        await house.clock.sleep(2 * LOOK_EVERY_S)
        await house.stop(runner, task)

        assert not machine.next.is_symlink()
        assert machine.asked == (0 if fault == "pinned" else machine.asked)
        assert machine.asked >= (0 if fault == "pinned" else 2)

    run_scenario(tmp_path, scenario)


def test_where_the_customer_pins_the_document_alone_decides(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        pin = ProgramPin("2.0.0", {"x86_64": NEW})
        machine = Machine(house, tmp_path / "opt", updates="pinned", program=pin)
        _, task = house.start()
        await task

        assert machine.asked == 0
        assert machine.next.readlink().name == NEW[:16]

    run_scenario(tmp_path, scenario)


def test_a_machine_reboots_when_it_should_and_is_idle_and_goes_on_if_it_cannot(
    tmp_path: Path,
) -> None:
    wanted = tmp_path / "reboot-required"
    tries: list[float] = []

    async def scenario(house: RunnerHarness) -> None:
        async def reboot() -> bool:
            tries.append(house.clock.monotonic())
            return False

        async def watch(deps: Deps) -> None:
            await watch_reboot(deps, wanted, reboot)

        house.executor.lasts_s = 100.0
        house.duties = [watch]
        runner, task = house.start()
        await house.clock.sleep(10)
        first = house.control.add_job()
        await house.clock.sleep(5)
        wanted.touch()
        await house.clock.sleep(150)
        second = house.control.add_job()
        await house.clock.sleep(150)
        await house.stop(runner, task)

        for job in (first, second):
            expect(house.control.result_of(job), OutcomeState.SUCCEEDED, Reason.COMPLETED)

    house = run_scenario(tmp_path, scenario)

    assert len(tries) == 1
    assert tries[0] > 100
    assert house.audit_events().count("reboot_begins") == 1
