"""A role that may deploy but not look at pods still gets its rollout."""

import pytest

from exclave.runner.kube.api.errors import ApiRefused, ApiStatus
from exclave.runner.kube.rollouts import waiting
from exclave.runner.kube.rollouts.inquiry import Inquiry
from tests.integration.runner.kube.manifests.objects import deployment, write
from tests.support.manifests import ManifestHarness


async def test_a_rollout_succeeds_although_its_reasons_cannot_be_read(
    bench: ManifestHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> Inquiry:
        raise ApiRefused(ApiStatus(403, "Forbidden", "pods is forbidden"), "GET /api/v1/pods")

    monkeypatch.setattr(waiting, "inquire", refuse)

    applied = await bench.deploy(write(deployment("web", bed_delay="3")))

    assert (applied.outcome.state, applied.outcome.message) == ("succeeded", "")
