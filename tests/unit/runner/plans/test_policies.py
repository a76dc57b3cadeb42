"""What OPA answers: read as findings, or a failure that names the policy."""

from pathlib import Path
from typing import cast

import pytest

from exclave.runner.jobs.context import Captured, JobContext
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.policy_evaluation import Evaluation, Question
from exclave.runner.processes.child import Command


class FakeOpa:
    """Answers every command with the same words."""

    def __init__(self, code: int, out: str, err: str = "", *, truncated: bool = False) -> None:
        self._answer = Captured(code, out, err, truncated)
        self.asked = 0

    def build_env(self) -> dict[str, str]:
        return {}

    async def capture(self, command: Command, *, name: str, most_bytes: int) -> Captured:
        assert (name, command.argv[0], command.cwd) == ("`opa eval`", "opa", Path("folder"))
        assert most_bytes == 16 << 20
        self.asked += 1
        return self._answer


async def evaluate(opa: FakeOpa) -> object:
    files = [Path("folder/policy.rego")]
    document = Path("folder/input.json")
    question = Question(b"{}")
    return await Evaluation(cast("JobContext", opa), "opa", question, document, files).run("sizes")


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
        (FakeOpa(0, "[]"), "opa failed without a message"),
        (FakeOpa(2, "", "no such file"), "no such file"),
        (FakeOpa(2, '{"errors": [{"message": "m", "location": {"row": 3}}]}'), "line 3: m"),
        (FakeOpa(2, '{"errors": ["strange"]}'), "opa failed without a message"),
        (FakeOpa(2, '{"errors": {}}'), "opa failed without a message"),
    ],
)
async def test_an_answer_of_a_wrong_shape_fails_the_policy(opa: FakeOpa, complaint: str) -> None:
    with pytest.raises(WorkFailed, match=f"`sizes` cannot be evaluated: {complaint}$"):
        await evaluate(opa)


async def test_a_policy_that_took_too_long_is_not_asked_again_in_the_old_syntax() -> None:
    opa = FakeOpa(2, '{"errors": [{"message": "cancelled", "code": "eval_cancel_error"}]}')

    with pytest.raises(WorkFailed, match="`sizes` cannot be evaluated: it did not end within 60 s"):
        await evaluate(opa)

    assert opa.asked == 1


async def test_an_answer_that_was_cut_is_no_answer() -> None:
    opa = FakeOpa(0, "{}", truncated=True)

    with pytest.raises(WorkFailed, match="it answers more than 16384 KiB"):
        await evaluate(opa)
