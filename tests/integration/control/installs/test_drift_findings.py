"""Findings of scans: new, seen, accepted, gone; for every type of component alike."""

import pytest

from exclave.base.errors import Conflict, Forbidden, NotFound
from exclave.control.audit import list_audit
from exclave.control.deps import Deps
from exclave.control.installs.drift_findings import (
    accept_finding,
    list_findings,
    reopen_finding,
    show_finding,
)
from exclave.control.installs.installs import show_install
from exclave.domain.drift_findings import FindingState
from exclave.domain.identity import InstallId, Role, User
from exclave.wire.drift_findings import AcceptFinding, DriftFindingReply, ReopenFinding
from exclave.wire.installs import WorkflowKind
from tests.support.install_fixture import InstallFixture, digest_of, provision, succeed
from tests.support.world import make_org, make_user

PART = "component:cache"


def describe(value: int, path: str = "spec.replicas") -> dict[str, str]:
    """Return a finding as a runner reports it."""
    return {
        "address": "apps/Deployment/shop/web",
        "path": path,
        "change": "update",
        "detail": f"{value} → 2",
        "content": f"{value:064x}",
    }


async def scan(life: InstallFixture, *findings: dict[str, str], more: int = 0) -> str:
    """Scan a component; return whether it has drifted."""
    drift = {"findings": list(findings), "more": more}
    noop = not findings
    life.answers[f"plan {PART}"] = [
        succeed(digest=digest_of(1), noop=noop, serial=1, outputs={}, drift=drift)
    ]
    await life.start(WorkflowKind.DRIFT_SCAN, components=["cache"])
    await life.run()
    shown = await show_install(life.deps, life.user, InstallId(life.install))
    return next(part.drift for part in shown.parts if part.part == PART)


async def find_all(
    life: InstallFixture, state: FindingState | None = None
) -> list[DriftFindingReply]:
    page = await list_findings(
        life.deps,
        life.user,
        InstallId(life.install),
        cursor="",
        limit=100,
        part=PART,
        state=state,
    )
    return page.items


async def accept(life: InstallFixture, finding: DriftFindingReply) -> DriftFindingReply:
    body = AcceptFinding(content=finding.content, reason="the customer scales by hand")
    return await accept_finding(life.deps, life.user, InstallId(life.install), finding.id, body)


async def test_a_finding_is_new_then_seen_then_gone_then_new_again(deps: Deps, user: User) -> None:
    life = await provision(deps, user)
    states = []

    for findings in ([describe(5)], [describe(5)], [], [describe(5)]):
        drift = await scan(life, *findings)
        found = await find_all(life) or await find_all(life, FindingState.GONE)
        states.append((found[0].state, drift))

    assert states == [
        ("new", "drifted"),
        ("seen", "drifted"),
        ("gone", "none"),
        ("new", "drifted"),
    ]


async def test_an_accepted_finding_is_no_drift_until_its_content_changes(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    await scan(life, describe(5), describe(1, "spec.paused"))
    paused, replicas = sorted(await find_all(life), key=lambda entry: entry.path)

    accepted = await accept(life, replicas)
    still = await scan(life, describe(5), describe(1, "spec.paused"))
    await accept(life, paused)
    settled = await scan(life, describe(5), describe(1, "spec.paused"))
    changed = await scan(life, describe(9), describe(1, "spec.paused"))

    assert (accepted.state, accepted.accepted_by) == ("accepted", user.name)
    assert (still, settled, changed) == ("drifted", "none", "drifted")
    states = {entry.path: (entry.state, entry.reason) for entry in await find_all(life)}
    assert states["spec.replicas"] == ("new", "")
    assert states["spec.paused"] == ("accepted", "the customer scales by hand")


async def test_accepting_the_last_open_finding_ends_the_drift_and_reopening_begins_it(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    await scan(life, describe(5))
    (finding,) = await find_all(life)

    await accept(life, finding)
    shown = await show_install(deps, user, InstallId(life.install))
    body = ReopenFinding(reason="it was a mistake")
    reopened = await reopen_finding(deps, user, InstallId(life.install), finding.id, body)
    after = await show_install(deps, user, InstallId(life.install))

    drift = [next(p.drift for p in each.parts if p.part == PART) for each in (shown, after)]
    assert (drift, reopened.state) == (["none", "drifted"], "seen")
    entries = (await list_audit(deps, user, "", 200)).items
    actions = {entry.action: entry.detail for entry in entries}
    assert actions["drift_accepted"]["reason"] == "the customer scales by hand"
    assert actions["drift_accepted"]["finding"] == "apps/Deployment/shop/web spec.replicas"
    assert actions["drift_reopened"]["reason"] == "it was a mistake"


async def test_what_changed_since_it_was_looked_at_is_not_accepted(deps: Deps, user: User) -> None:
    life = await provision(deps, user)
    await scan(life, describe(5))
    (finding,) = await find_all(life)
    await scan(life, describe(6))

    with pytest.raises(Conflict, match="not what was looked at"):
        await accept(life, finding)

    assert (await find_all(life))[0].state == "new"


async def test_a_scan_that_left_something_out_forgets_nothing_and_stays_drifted(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    await scan(life, describe(5), describe(1, "spec.paused"))
    for finding in await find_all(life):
        await accept(life, finding)

    drift = await scan(life, describe(5), more=7)

    assert drift == "drifted"
    assert {entry.state for entry in await find_all(life)} == {"accepted"}


async def test_a_teardown_ends_all_findings(deps: Deps, user: User) -> None:
    life = await provision(deps, user)
    await scan(life, describe(5))

    await life.start(WorkflowKind.TEARDOWN_ALL, approve_all=True)
    await life.run()

    assert await find_all(life) == []
    assert len(await find_all(life, FindingState.GONE)) == 1


async def test_an_older_runner_that_reports_no_findings_still_says_whether_it_drifted(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    life.answers[f"plan {PART}"] = [succeed(digest=digest_of(1), noop=False, serial=1)]

    await life.start(WorkflowKind.DRIFT_SCAN, components=["cache"])
    await life.run()

    shown = await show_install(deps, user, InstallId(life.install))
    assert next(p.drift for p in shown.parts if p.part == PART) == "drifted"
    assert await find_all(life) == []


async def test_another_tenant_and_a_viewer_change_nothing(deps: Deps, user: User) -> None:
    life = await provision(deps, user)
    await scan(life, describe(5))
    (finding,) = await find_all(life)
    body = AcceptFinding(content=finding.content, reason="because")
    stranger = await make_org(deps, "other")
    viewer = await make_user(deps, user, Role.VIEWER)
    install = InstallId(life.install)

    with pytest.raises(NotFound):
        await accept_finding(deps, stranger, install, finding.id, body)
    with pytest.raises(NotFound):
        await show_finding(deps, stranger, install, finding.id)
    with pytest.raises(Forbidden):
        await accept_finding(deps, viewer, install, finding.id, body)

    assert (await find_all(life))[0].state == "new"
