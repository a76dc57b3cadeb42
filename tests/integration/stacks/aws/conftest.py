"""An emulated AWS, and a stack on it."""

from collections.abc import Iterator

import pytest

from tests.support.aws_stacks import EmulatedStack, make_model
from tests.support.emulated_aws.server import EmulatedAws, start_aws


@pytest.fixture(scope="session")
def server() -> Iterator[EmulatedAws]:
    with start_aws() as aws:
        yield aws


@pytest.fixture
def aws(server: EmulatedAws) -> EmulatedAws:
    """Return an emulation with nothing in it."""
    server.check_signatures(on=False)
    server.reset()
    return server


@pytest.fixture
def stack(aws: EmulatedAws) -> EmulatedStack:
    """Return a stack that has just been created."""
    made = EmulatedStack(aws, make_model())
    made.create()
    return made
