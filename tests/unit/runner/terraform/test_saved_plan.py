"""The JSON of a saved plan: what has another shape is refused, never read as empty."""

import pytest

from exclave.runner.terraform.saved_plan import Change, ResourceChange, parse_plan
from exclave.runner.terraform.state_document import Output


def test_a_plan_is_read() -> None:
    plan = parse_plan(
        """{"resource_changes": [{
              "address": "module.m.t.a", "module_address": "module.m", "type": "t", "name": "a",
              "previous_address": "t.a", "action_reason": "why",
              "change": {"actions": ["delete", "create"], "before": 1, "after": 2,
                         "after_unknown": false, "before_sensitive": true, "after_sensitive": [],
                         "replace_paths": [["zone", 0]], "importing": {"id": "i-1"}}}],
            "output_changes": {"o": {"actions": ["create"], "after": "x"}},
            "planned_values": {"outputs": {"o": {"value": "x", "sensitive": true}}}}"""
    )

    change = Change(
        ("delete", "create"), 1, 2, False, True, [], (["zone", 0],), is_import=True, import_id="i-1"
    )
    assert plan.resources == (
        ResourceChange("module.m.t.a", "t", "a", change, "module.m", "why", "t.a"),
    )
    assert plan.drift == ()
    assert plan.outputs == {"o": Change(("create",), after="x")}
    assert plan.planned_outputs == {"o": Output("x", sensitive=True)}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the plan is not valid JSON"),
        ("[]", "the plan is not an object"),
        ('{"resource_changes": {"a": 1}}', "`resource_changes` of the plan is not a list"),
        ('{"resource_drift": "x"}', "`resource_drift` of the plan is not a list"),
        ('{"resource_changes": [1]}', "an entry of `resource_changes` in the plan is not an obj"),
        ('{"resource_changes": [{"address": "t.a"}]}', "the change of `t.a` is not an object"),
        ('{"resource_changes": [{"address": "t.a", "change": {}}]}', "`actions` on `t.a` is not"),
        ('{"output_changes": [1]}', "`output_changes` of the plan is not an object"),
        ('{"output_changes": {"o": {"actions": [1]}}}', "an action on the output `o` is not a t"),
        ('{"planned_values": {"outputs": {"o": 1}}}', "the output `o` is not an object"),
    ],
)
def test_a_plan_of_a_wrong_shape_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_plan(text)
