"""The Stacks that exist, and what asking for another one answers."""

import pytest

from exclave.appconfig.model.kinds.runner import CLOUDS
from exclave.base.errors import Conflict
from exclave.domain.stacks import Cloud
from exclave.stacks.base import Stack
from exclave.stacks.local import LocalStack
from exclave.stacks.registry import STACKS, get_stack
from tests.support.toy_stack import add_toy_stack


def test_every_stack_is_registered_for_its_own_cloud() -> None:
    assert {cloud: stack.cloud for cloud, stack in STACKS.items()} == {c: c for c in STACKS}
    assert isinstance(get_stack("local", owner="the app"), LocalStack)


def test_apps_and_stacks_know_the_same_clouds() -> None:
    assert {*CLOUDS.values()} == {*Cloud}


@pytest.mark.parametrize("cloud", ["gcp", "mars", ""])
def test_a_cloud_without_a_stack_is_refused_with_the_names_of_those_that_have_one(
    monkeypatch: pytest.MonkeyPatch, cloud: str
) -> None:
    add_toy_stack(monkeypatch)

    with pytest.raises(Conflict) as refused:
        get_stack(cloud, owner="the app `shop`")

    assert refused.value.message == (
        f"the app `shop` is for `{cloud}`, and there is no Stack for that cloud yet"
    )
    assert "Clouds with a Stack: `local`, `aws`, `azure`, `gcp`." in refused.value.advice


def test_a_new_stack_is_found_by_its_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    add_toy_stack(monkeypatch)

    stack: Stack = get_stack("aws", owner="the app `shop`")

    assert stack.cloud is Cloud.AWS
