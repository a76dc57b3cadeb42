"""Which runners a control plane still speaks to."""

import pytest

from exclave.base.errors import Conflict
from exclave.control.dispatch.polls import check_protocol


@pytest.mark.parametrize("protocol", ["1.0", "1.1", "1.2", "1.99"])
def test_one_minor_back_and_newer_minors_are_welcome(protocol: str) -> None:
    check_protocol(protocol)


@pytest.mark.parametrize("protocol", ["0.9", "2.0", "99.1"])
def test_another_major_is_told_what_is_spoken_here(protocol: str) -> None:
    with pytest.raises(Conflict, match=f"runner protocol {protocol}") as refused:
        check_protocol(protocol)

    assert "1.0 or later" in refused.value.advice
