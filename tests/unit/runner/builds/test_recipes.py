"""The registry of recipes by artifact type."""

import pytest

from exclave.runner.builds.recipes import find_recipe
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason


def test_an_artifact_type_that_this_runner_does_not_know_is_refused() -> None:
    with pytest.raises(WorkFailed, match="cannot build a `balloon`: update its program") as caught:
        find_recipe("balloon")

    assert caught.value.reason is Reason.KIND_UNSUPPORTED
