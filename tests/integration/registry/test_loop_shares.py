"""Requests to the registry are charged for the time in which they hold the event loop."""

from dataclasses import replace

import pytest

from exclave.control.runtime import loop_shares
from exclave.control.runtime.loop_shares import LoopShares
from exclave.control.runtime.request_slots import RequestSlots
from tests.integration.registry.kit import EMPTY, Hub, make_manifest, serve_hub


async def test_pushes_of_an_org_that_used_up_its_loop_time_are_refused_and_pulls_are_not(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_shares, "_now", lambda: 1000.0)
    slots = RequestSlots(8)
    deps = replace(hub.deps, loop_slots=slots, loop_shares=LoopShares(slots))
    async with serve_hub(deps) as shared:
        await shared.push(EMPTY)
        for org in ("org_other", shared.org):
            async with slots.hold(org):
                pass
        deps.loop_shares.charge(shared.org, "registry PUT", 10.0, 0.0)

        refused = await shared.put(make_manifest())
        served = await shared.call("GET", f"{shared.name('apps/demo')}/tags/list")

    assert refused.status_code == 429
    assert refused.json()["errors"][0]["code"] == "TOOMANYREQUESTS"
    assert served.status_code != 429


async def test_a_long_step_of_a_push_is_charged_to_its_org(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    charges: list[tuple[str, str, bool]] = []
    monkeypatch.setattr("exclave.base.loop_time.LONG_S", 0.0)
    monkeypatch.setattr(
        type(hub.deps.loop_shares),
        "charge",
        lambda _, org, kind, seconds, expected: charges.append((org, kind, seconds > expected)),
    )

    await hub.push(EMPTY)

    assert (hub.org, "registry POST", True) in charges
