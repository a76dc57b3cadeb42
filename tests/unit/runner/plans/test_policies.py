"""What OPA answers: read as findings, or a failure that names the policy."""

from pathlib import Path
from typing import cast

import pytest

from exclave.runner.jobs.context import Captured, JobContext
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.policies import _evaluate
from exclave.runner.processes.child import Command
from exclave.wire.specs import RegoPolicy

POLICY = RegoPolicy(name="sizes", rego="package nuon")


class FakeOpa:
    """Answers every command with the same words."""

    def __init__(self, code: int, out: str, err: str = "") -> None:
        self._answer = Captured(code, out, err)

    def build_env(self) -> dict[str, str]:
        return {}

    async def capture(self, command: Command, *, name: str) -> Captured:
        assert (name, command.argv[0], command.cwd) == ("`opa eval`", "opa", Path("folder"))
        return self._answer


async def evaluate(opa: FakeOpa) -> object:
    file = Path("folder/policy.rego")
    return await _evaluate(cast("JobContext", opa), "opa", POLICY, file, Path("input.json"))


@pytest.mark.parametrize(
    ("out", "value"),
    [
        ('{"result": [{"expressions": [{"value": {"deny": ["no"]}}]}]}', {"deny": ["no"]}),
        ("{}", None),
        ('{"result": [1]}', None),
        ('{"result": [{"expressions": {}}]}', None),
    ],
)
async def test_the_value_of_the_package_is_found(out: str, value: object) -> None:
    assert await evaluate(FakeOpa(0, out)) == value


@pytest.mark.parametrize(
    ("opa", "complaint"),
    [
        (FakeOpa(0, "not json", "odd"), "odd"),
        (FakeOpa(0, "[]"), "opa failed without a word"),
        (FakeOpa(2, "", "no such file"), "no such file"),
        (FakeOpa(2, '{"errors": [{"message": "m", "location": {"row": 3}}]}'), "line 3: m"),
        (FakeOpa(2, '{"errors": ["strange"]}'), "opa failed without a word"),
        (FakeOpa(2, '{"errors": {}}'), "opa failed without a word"),
    ],
)
async def test_an_answer_of_a_wrong_shape_fails_the_policy(opa: FakeOpa, complaint: str) -> None:
    with pytest.raises(WorkFailed, match=f"`sizes` cannot be evaluated: {complaint}$"):
        await evaluate(opa)
