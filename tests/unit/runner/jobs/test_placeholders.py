"""Placeholders: filled so that a value means itself, wherever it stands."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.base.hcl import Attribute, Index
from exclave.base.ids import SystemRandomness
from exclave.domain.tf_addresses import parse_address
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.jobs.executor import JobRun
from exclave.runner.jobs.placeholders import (
    STATE,
    Filler,
    find_placeholders,
    gather_values,
    is_placeholder,
)
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.sealing import Purpose, Sealer
from exclave.runner.secrets.store import SecretStore
from exclave.wire.jobs import JsonValue
from exclave.wire.states import SealedState, StateHeader

VALUE = 'a"b\\c${d}%{e}\nf'
FILLER = Filler({"secret:x": VALUE, "input:y": "Y", "output:component:db:z": "Z"})


def test_plain_texts_are_filled_as_they_are() -> None:
    assert FILLER.fill("<((exclave:secret:x))|((exclave:input:y))>") == f"<{VALUE}|Y>"
    assert FILLER.fill("((exclave:output:component:db:z))") == "Z"
    assert FILLER.fill("nothing ((here)) exclave:secret:x") == "nothing ((here)) exclave:secret:x"


def test_json_keeps_its_shape() -> None:
    given_value: JsonValue = {"((exclave:input:y))": ["((exclave:secret:x))", 1, None, True]}

    assert FILLER.fill_json(given_value) == {"Y": [VALUE, 1, None, True]}


def test_hcl_is_filled_by_place() -> None:
    text = """
# ((exclave:secret:x))
a = "pre ((exclave:input:y)) ${x["((exclave:input:y))"]}"
b = ((exclave:input:y))
c = <<EOT
((exclave:secret:x))
EOT
"""

    filled = FILLER.fill_hcl(text)

    assert (
        filled
        == """
# \na = "pre Y ${x["Y"]}"
b = "Y"
c = <<EOT
a"b\\c$${d}%%{e}
f
EOT
"""
    )


@given(st.text(max_size=30))
def test_a_quoted_value_reads_back(value: str) -> None:
    filled = Filler({"secret:x": value}).fill_hcl('a = "((exclave:secret:x))"')

    quoted = filled.removeprefix("a = ")
    assert parse_address(f"a.b[{quoted}]") == (Attribute("a"), Attribute("b"), Index(value))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("((exclave:secret:other))", "has no value"),
        ("((exclave:secret:))", "not a placeholder"),
        ("((exclave:magic:x))", "not a placeholder"),
        ("((exclave:secret:x)", "not a placeholder"),
        ("((exclave:output:z))", "not a placeholder"),
        ("((exclave:secret:x)) ((exclave:", "not a placeholder"),
    ],
)
def test_what_cannot_be_filled_is_an_error(text: str, words: str) -> None:
    for fill in (FILLER.fill, FILLER.fill_hcl):
        with pytest.raises(WorkFailed, match=words):
            fill(text)


def test_broken_hcl_with_a_placeholder_is_an_error() -> None:
    with pytest.raises(WorkFailed, match="not valid HCL"):
        FILLER.fill_hcl('a = "((exclave:secret:x))')


def test_names_are_found() -> None:
    texts = ["((exclave:secret:a-1))((exclave:input:b_2))", "((exclave:output:sandbox:c))"]

    assert find_placeholders(texts) == {"secret:a-1", "input:b_2", "output:sandbox:c"}
    assert is_placeholder(" ((exclave:secret:a)) ")
    assert not is_placeholder("((exclave:secret:a))x")


class StateUplink:
    """A control plane that has one sealed state."""

    org_id, queue_id = "o", "q"

    def __init__(self, sealer: Sealer, state: bytes) -> None:
        purpose = Purpose(self.org_id, self.queue_id, "sandbox", STATE)
        header = StateHeader(serial=1, lineage="l", sha256="0" * 64)
        self._state = SealedState(header=header, sealed=sealer.seal(state, purpose))

    async def read_state(self, workspace: str) -> SealedState:
        assert workspace == "sandbox"
        return self._state


async def gather(folder: Path, state: bytes) -> Filler:
    async def fetch(names: set[str]) -> dict[str, str]:
        assert not names
        return {}

    sealer = Sealer(folder, SystemRandomness())
    uplink = cast("Uplink", StateUplink(sealer, state))
    log = SimpleNamespace(hide=lambda _: None)
    return await gather_values(
        cast("JobRun", SimpleNamespace(uplink=uplink)),
        cast("LogWriter", log),
        ["((exclave:output:sandbox:port))"],
        cast("SecretStore", SimpleNamespace(fetch=fetch)),
        sealer,
    )


async def test_outputs_come_from_the_sealed_state(tmp_path: Path) -> None:
    filler = await gather(tmp_path, b'{"outputs": {"port": {"value": [80], "sensitive": true}}}')

    assert filler.fill("((exclave:output:sandbox:port))") == "[80]"


@pytest.mark.parametrize(
    ("state", "complaint"),
    [
        (b"rubbish", "the outputs of `sandbox` cannot be read: the state is not valid JSON"),
        (b"[]", "the outputs of `sandbox` cannot be read: the state is not an object"),
        (b'{"outputs": [1]}', "`outputs` of the state is not an object"),
        (b'{"outputs": {}}', "`sandbox` has no output `port`"),
    ],
)
async def test_a_state_of_a_wrong_shape_has_no_outputs(
    tmp_path: Path, state: bytes, complaint: str
) -> None:
    with pytest.raises(WorkFailed, match=complaint):
        await gather(tmp_path, state)
