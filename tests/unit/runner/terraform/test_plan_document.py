"""Plans as people read them."""

import json
from typing import Any

import pytest

from exclave.runner.plans.shown_values import mask_value
from exclave.runner.terraform.plan_document import describe_plan, is_noop, read_action
from exclave.runner.terraform.saved_plan import parse_plan, read_change
from exclave.wire.jobs import JsonValue


def mask(text: str) -> str:
    return text.replace("topsecret", "***")


def change(actions: list[str], **more: Any) -> dict[str, Any]:
    return {"actions": actions, **more}


def resource(told: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"address": "t.a", "type": "t", "name": "a", "change": told, **more}


def describe(*resources: dict[str, Any], **outputs: dict[str, Any]) -> Any:
    plan = {"resource_changes": list(resources), "output_changes": outputs}
    return describe_plan(parse_plan(json.dumps(plan)), mask, tool="terraform", destroy=False)


@pytest.mark.parametrize(
    ("actions", "more", "name"),
    [
        (["no-op"], {}, "no-op"),
        (["create"], {}, "create"),
        (["read"], {}, "read"),
        (["update"], {}, "update"),
        (["delete"], {}, "delete"),
        (["forget"], {}, "forget"),
        (["delete", "create"], {}, "replace"),
        (["create", "delete"], {}, "replace"),
        (["create", "forget"], {}, "replace"),
        (["no-op"], {"importing": {"id": "x"}}, "import"),
    ],
)
def test_actions_have_names(actions: list[str], more: dict[str, Any], name: str) -> None:
    assert read_action(read_change(change(actions, **more), "it")) == name


def test_only_differences_are_told_with_their_paths() -> None:
    document = describe(
        resource(
            change(
                ["update"],
                before={"a": 1, "tags": {"x y": "1", "z": "same"}, "list": [1, 2], "gone": "g"},
                after={"a": 2, "tags": {"x y": "2", "z": "same"}, "list": [1, 3, 4]},
                after_unknown={"made": True},
                before_sensitive={},
                after_sensitive={},
            )
        )
    )

    told = [
        (one.path, one.before, one.after, one.unknown) for one in document.resources[0].attributes
    ]
    assert told == [
        ("a", 1, 2, False),
        ("gone", "g", None, False),
        ("list[1]", 2, 3, False),
        ("list[2]", None, 4, False),
        ("made", None, None, True),
        ('tags["x y"]', "1", "2", False),
    ]


def test_sensitive_values_are_never_told() -> None:
    document = describe(
        resource(
            change(
                ["update"],
                before={
                    "password": "old",
                    "deep": {"k": "old"},
                    "list": ["old"],
                    "open": "topsecret",
                },
                after={
                    "password": "new",
                    "deep": {"k": "new"},
                    "list": ["new", "x"],
                    "open": "a topsecret",
                },
                before_sensitive={"password": True, "deep": {"k": True}},
                after_sensitive={"password": True, "list": [True, False]},
            )
        ),
        out=change(
            ["update"], before="old", after="new", before_sensitive=True, after_sensitive=False
        ),
    )

    text = document.model_dump_json()
    assert "old" not in text
    assert "new" not in text
    assert "topsecret" not in text
    told = {one.path: one.sensitive for one in document.resources[0].attributes}
    assert told == {
        "deep.k": True,
        "list[0]": True,
        "list[1]": False,
        "open": False,
        "password": True,
    }
    assert document.outputs[0].sensitive is True


def test_a_sensitive_whole_hides_all_of_it() -> None:
    document = describe(
        resource(change(["create"], before=None, after={"a": "topsecret"}, after_sensitive=True))
    )

    assert [one.model_dump() for one in document.resources[0].attributes] == [
        {
            "path": "",
            "before": None,
            "after": None,
            "sensitive": True,
            "unknown": False,
            "forces_replacement": False,
            "ignored": False,
        }
    ]


def test_what_forces_a_replacement_is_marked() -> None:
    document = describe(
        resource(
            change(
                ["delete", "create"],
                before={"zone": "a", "size": 1, "net": [{"ip": "1"}]},
                after={"zone": "b", "size": 2, "net": [{"ip": "2"}]},
                replace_paths=[["zone"], ["net", 0, "ip"]],
            ),
            action_reason="replace_because_cannot_update",
        )
    )

    told = {one.path: one.forces_replacement for one in document.resources[0].attributes}
    assert told == {"zone": True, "size": False, "net[0].ip": True}
    assert document.resources[0].reason == "replace_because_cannot_update"
    assert document.summary.replace == 1
    assert not is_noop(document)


def test_reads_and_no_ops_change_nothing_but_moves_and_outputs_do() -> None:
    quiet = describe(resource(change(["no-op"])), resource(change(["read"])))
    moved = describe(resource(change(["no-op"]), previous_address="t.old"))
    output = describe(o=change(["create"], after=1))

    assert (is_noop(quiet), is_noop(moved), is_noop(output)) == (True, False, False)
    assert (moved.resources[0].action, moved.summary.move) == ("move", 1)
    assert [one.action for one in quiet.resources] == ["read"]


def test_long_texts_and_many_attributes_are_cut() -> None:
    after = {f"k{n:04d}": "x" * 5000 for n in range(600)}

    document = describe(resource(change(["create"], before=None, after=after)))

    attributes = document.resources[0].attributes
    assert len(attributes) == 500
    assert str(attributes[0].after).endswith("(1000 more characters)")


def test_a_plan_without_anything_is_described() -> None:
    document = describe_plan(parse_plan("{}"), mask, tool="tofu", destroy=True)

    assert is_noop(document)
    assert document.model_dump(by_alias=True)["summary"]["import"] == 0


@pytest.mark.parametrize(
    ("value", "shown"),
    [(12345678, "***"), (-12345678.5, "-***.5"), (1234, 1234), (True, True), (None, None)],
)
def test_a_number_that_is_a_secret_is_masked(value: JsonValue, shown: JsonValue) -> None:
    def mask(text: str) -> str:
        return text.replace("12345678", "***")

    assert mask_value({"pin": [value]}, mask) == {"pin": [shown]}
