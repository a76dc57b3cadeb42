"""Values of inputs: types, owners, defaults; and every mistake at once."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.appconfig.model.kinds.inputs import Input
from exclave.control.installs.input_validation import (
    BadInputs,
    check_change,
    check_types,
    check_values,
    fill_values,
    find_flaw,
    hide_values,
)

DECLARED = (
    Input(name="domain", group="g", required=True, description="Where it is served."),
    Input(name="replicas", group="g", type="number", default="2"),
    Input(name="debug", group="g", type="bool"),
    Input(name="token", group="g", sensitive=True, type="json"),
    Input(name="zone", group="g", user_configurable=True, required=True),
)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("string", "anything at all \n"), ("number", "3"), ("number", "-0.5e3"), ("number", ".5"),
        ("bool", "true"), ("bool", "false"), ("list", "a,b"), ("list", '["a", "b"]'), ("list", "one"),
        ("json", '{"a": [1]}'), ("json", "null"), ("yaml", "a:\n  - b\n"), ("yaml", "# \tcomment"), ("yaml", "a: &x 1\nb: *x"),
        ("hcl", 'a = "x"\nb = [1, { c = 2 }]'), ("hcl", "a = <<EOT\n}}\nEOT\n"), ("hcl", "# }\n/* ] */"),
        ("hcl", 'a = "${f("x")}"'), ("hcl", 'x = "${replace(var.a, "(", "")}"'), ("hcl", 'x = "${f({ a = "}" })}"'),
        ("hcl", "a = <<-E-1\r\n}}\r\n  E-1\r\n"), ("hcl", '"${' * 50_000 + "x" + '}"' * 50_000), ("number", ""), ("json", ""), ("unknown", "x"),
    ],
)  # fmt: skip
def test_a_value_of_its_type_has_no_flaw(kind: str, text: str) -> None:
    assert find_flaw(kind, text) == ""


@pytest.mark.parametrize(
    ("kind", "text", "flaw"),
    [
        ("number", "three", "not a number"), ("number", "1_000", "not a number"), ("number", "nan", "not a number"),
        ("number", " 1", "not a number"), ("number", "1\n", "not a number"), ("number", "0x10", "not a number"),
        ("bool", "True", "neither `true` nor `false`"), ("bool", "1", "neither"),
        ("list", "[a]", "not a list"), ("list", "[1", "at line 1, column 3"), ("json", "[NaN]", "it has no NaN"),
        ("json", "{", "at line 1, column 2"), ("json", "[" * 100_000, "nested too deeply"), ("json", "{'a': 1}", "not JSON"),
        ("yaml", "a:\n\tb: 1", "at line 2, column 1"),
        ("hcl", "a = [", "`[` at line 1, column 5 is never closed"), ("hcl", "a = 1\n}", "`}` at line 2, column 1 closes nothing"),
        ("hcl", 'a = "x', "at line 1, column 5 is never closed"), ("hcl", "a = <<EOT\nx", "`<<EOT` at line 1, column 5 is never closed"),
        ("yaml", "a: [1", "did not find expected"), ("yaml", "a: *x", "no anchor before it at line 1, column 4"),
        ("yaml", "[" * 60_000, "nested too deeply"), ("yaml", "\x07", "a character"), ("yaml", "a: b: c", "column 5"),
        ("hcl", "a = 1\nb = # c\n", "`=` at line 2, column 3 has no value"), ("hcl", "a = (]", "`]` at line 1, column 6 closes nothing"), ("hcl", "/* x", "never closed"),
        ("hcl", 'a = "${f(', "`${` at line 1, column 6 is never closed"), ("hcl", 'a = "${f("b)}\n', '`"` at line 1, column 10 is never closed'),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_told_what_is_wrong(kind: str, text: str, flaw: str) -> None:
    assert flaw in find_flaw(kind, text)


@given(
    st.sampled_from(["string", "number", "bool", "list", "json", "yaml", "hcl"]),
    st.text(max_size=200),
)
def test_any_text_is_judged_and_nothing_raises(kind: str, text: str) -> None:
    assert isinstance(find_flaw(kind, text), str)


def test_all_mistakes_are_told_at_once() -> None:
    given = {"domian": "x", "replicas": "many", "zone": "b", "domain": ""}

    with pytest.raises(BadInputs) as caught:
        check_values(DECLARED, given)

    told = caught.value.message
    assert told.startswith(
        "4 inputs:\n  - `domian`: the app has no such input. Did you mean `domain`?"
    )
    assert "`replicas`: the value is not a number (given: `many`)" in told
    assert "`zone`: the customer sets it, not the vendor." in told
    assert "`domain`: it is required and may not be empty." in told
    assert [each["input"] for each in caught.value.facts["mistakes"]] == list(given)  # type: ignore[attr-defined]


def test_a_sensitive_value_is_never_repeated() -> None:
    with pytest.raises(BadInputs) as caught:
        check_values(DECLARED, {"token": "hunter2"})

    assert "not JSON" in caught.value.message
    assert "hunter2" not in caught.value.message + str(caught.value.facts)


def test_a_long_value_is_cut() -> None:
    with pytest.raises(BadInputs) as caught:
        check_values(DECLARED, {"replicas": "x" * 5000})

    assert len(caught.value.message) < 200


def test_nobody_smuggles_in_a_placeholder_of_the_runner() -> None:
    with pytest.raises(BadInputs, match="may not contain"):
        check_values(DECLARED, {"domain": "a((exclave:secret:db_password))"})


def test_the_customer_sets_only_what_is_theirs() -> None:
    check_values(DECLARED, {"zone": "b"}, by_customer=True)
    with pytest.raises(BadInputs, match="the vendor sets it"):
        check_values(DECLARED, {"domain": "b"}, by_customer=True)


def test_an_app_without_inputs_says_so() -> None:
    with pytest.raises(BadInputs, match="The app has no inputs"):
        check_values((), {"a": "b"})


def test_required_values_must_be_there_except_the_customers() -> None:
    check_change(DECLARED, {}, {"domain": "a"})
    for values in ({}, {"domain": ""}):
        with pytest.raises(BadInputs, match=r"required and has no value \(Where it is served"):
            check_change(DECLARED, {}, values)


def test_a_required_value_is_not_replaced_by_a_default() -> None:
    declared = (Input(name="a", group="g", required=True, default="x"),)

    with pytest.raises(BadInputs):
        check_change(declared, {}, {})


def test_types_may_change_under_a_value() -> None:
    with pytest.raises(BadInputs, match="is `number` now"):
        check_types(DECLARED, {"replicas": "two"})


def test_defaults_are_filled_in_and_sensitive_values_stay_hidden() -> None:
    values = {"domain": "a.test", "token": '"t"', "gone": "x"}

    assert fill_values(DECLARED, values) == {
        "domain": "a.test",
        "replicas": "2",
        "debug": "",
        "token": '"t"',
        "zone": "",
    }
    assert hide_values(DECLARED, values)["token"] == "((exclave:input:token))"
    assert hide_values(DECLARED, {})["token"] == ""


def test_what_the_customers_machine_keeps_stays_its_own_placeholder() -> None:
    declared = (Input(name="pin", group="g", sensitive=True, user_configurable=True),)

    hidden = hide_values(declared, {"pin": "((exclave:secret:stack-input-pin))"})

    assert hidden == {"pin": "((exclave:secret:stack-input-pin))"}


def test_what_does_not_fit_and_what_is_missing_are_told_together() -> None:
    with pytest.raises(BadInputs, match=r"(?s)2 inputs:.*`nothing`.*`domain`"):
        check_change(DECLARED, {"nothing": "x"}, {"nothing": "x"})


def test_a_yaml_bomb_is_only_looked_at() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for one, other in itertools.pairwise("abcdefghijklmnop"):
        lines.append(f"{other}: &{other} [{', '.join([f'*{one}'] * 9)}]")

    assert find_flaw("yaml", "\n".join(lines)) == ""
