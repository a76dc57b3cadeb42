"""The edges of rendering: what is a template, whose values, which time."""

from datetime import UTC, datetime
from typing import Any

import pytest

from exclave.template import Limits, TemplateProblem, is_template, parse, render


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ .nuon.install.id }}", True),
        ("{{ element.name }}", False),
        ("{{nuon.install.id}}", False),
        ("plain", False),
        ("{{ $.nuon.id }}", True),
    ],
)
def test_only_a_text_that_names_the_root_is_a_template(text: str, expected: bool) -> None:
    assert is_template(text) is expected


def test_the_root_key_is_a_choice() -> None:
    assert is_template("{{.Values.x}}", root="Values")
    assert render(parse("{{.Values.x}}", root="Values"), {"Values": {"x": 1}}) == "1"


def test_a_parsed_template_can_be_rendered_again() -> None:
    template = parse("{{$x := .n}}{{$x = add $x 1}}{{$x}}")

    assert [render(template, {"n": n}) for n in (1, 2, 1)] == ["2", "3", "2"]


@pytest.mark.parametrize(
    "text",
    [
        '{{set .m "b" 2}}',
        '{{unset .m "a"}}',
        "{{merge .m (dict)}}",
        '{{mergeOverwrite .m (dict "a" 2)}}',
    ],
)
def test_the_values_of_the_caller_never_change(text: str) -> None:
    values: dict[str, Any] = {"m": {"a": 1}}

    render(parse(text), values)

    assert values == {"m": {"a": 1}}


class Sneaky:
    """Would show whether a template can reach attributes."""

    secret = "s3cret"

    def __str__(self) -> str:
        return self.secret


@pytest.mark.parametrize(
    "text", ["{{.x}}", "{{.x.secret}}", "{{print .x}}", "{{if .x}}a{{end}}", "{{toJson .x}}", "{{kindOf .x}}", '{{printf "%v" .x}}', "{{range .x}}{{end}}"]
)  # fmt: skip
def test_objects_are_not_data(text: str) -> None:
    with pytest.raises(TemplateProblem):
        render(parse(text), {"x": Sneaky()})


@pytest.mark.parametrize("name", ["__class__", "__init__", "items", "keys", "upper"])
def test_attributes_cannot_be_read(name: str) -> None:
    with pytest.raises(TemplateProblem, match=r"does not exist|has no key"):
        render(parse(f"{{{{.m.{name}}}}}"), {"m": {}})
    with pytest.raises(TemplateProblem, match="has no key"):
        render(parse(f"{{{{.s.{name}}}}}"), {"s": "text"})


def test_the_time_is_handed_in() -> None:
    now = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)

    assert render(parse('{{now | date "2006-01-02 15:04"}}'), {}, now=now) == "2024-05-06 07:08"
    assert render(parse("{{ago 1714979280}}"), {}, now=now) == "9s"
    with pytest.raises(TemplateProblem, match="now is not available"):
        render(parse("{{now}}"), {})


def test_only_utc_is_a_time_zone() -> None:
    with pytest.raises(TemplateProblem, match="zones are files of the host"):
        render(parse('{{dateInZone "15:04" 0 "Europe/Berlin"}}'), {})


def test_a_text_is_never_escaped() -> None:
    assert render(parse("{{.x}}"), {"x": "<&>\"'+"}) == "<&>\"'+"


def test_integers_stay_integers() -> None:
    assert render(parse("{{.n}} {{eq .n 1000000}}"), {"n": 1_000_000}) == "1000000 true"
    assert render(parse("{{.n}}"), {"n": 1_000_000.0}) == "1e+06"


def test_a_number_beyond_64_bits_is_refused() -> None:
    with pytest.raises(TemplateProblem, match="64 bits"):
        render(parse("{{.n}}"), {"n": 10**5000})


HUNGRY = [
    "{{range $i := 100000000}}{{end}}",
    '{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}',
    '{{$x := "ab"}}{{range $i := 100}}{{$x = printf "%s%s" $x $x}}{{end}}',
    "{{$x := list 1}}{{range $i := 90}}{{$x = list $x $x}}{{end}}{{$x}}",
    "{{$x := list 1}}{{range $i := 90}}{{$x = list $x $x}}{{end}}{{toJson $x}}",
    "{{$x := list 1}}{{range $i := 90}}{{$x = list $x $x}}{{end}}{{deepEqual $x (deepCopy $x)}}",
    '{{$d := dict}}{{$_ := set $d "s" $d}}{{$d}}',
    '{{$d := dict}}{{$_ := set $d "s" $d}}{{toJson $d}}',
    '{{$d := dict}}{{$_ := set $d "s" $d}}{{printf "%v" $d}}',
    "{{until 1000000000}}",
    "{{untilStep 0 9223372036854775807 1}}",
    '{{repeat 1000000000 "x"}}',
    '{{printf "%999999d%999999d" 1 1}}',
    "{{seq 1 100000000}}",
    '{{indent 100000000 "x"}}',
    '{{$x := repeat 50000 "a"}}{{replace "a" $x $x}}',
    '{{$x := repeat 300000 "a"}}{{splitList "" $x}}',
    '{{regexMatch "(x+x+)+y" (repeat 400000 "x")}}',
    '{{$x := repeat 20000 "a"}}{{date $x 0}}',
]


@pytest.mark.parametrize("text", HUNGRY)
def test_a_hungry_template_stops_at_a_limit(text: str) -> None:
    limits = Limits(steps=50_000)

    with pytest.raises(TemplateProblem):
        render(parse(text), {}, limits)


def test_limits_are_deterministic() -> None:
    text = parse("{{range $i := 1000}}x{{end}}")

    assert len(render(text, {}, Limits(steps=10_000))) == 1000
    with pytest.raises(TemplateProblem, match="more than 1000 steps"):
        render(text, {}, Limits(steps=1_000))
    with pytest.raises(TemplateProblem, match="larger than 100 characters"):
        render(text, {}, Limits(output=100))


@pytest.mark.parametrize(
    "text",
    [
        "{{if 1}}" * 5000,
        "{{" + "(" * 5000,
        "{{" + "(" * 5000 + "1" + ")" * 5000 + "}}",
        "x" * 2_000_000,
    ],
)
def test_a_monstrous_template_is_refused(text: str) -> None:
    with pytest.raises(TemplateProblem):
        parse(text)


def test_a_long_chain_of_else_if_is_fine() -> None:
    chain = "{{if eq .n 0}}0" + "".join(f"{{{{else if eq .n {n}}}}}{n}" for n in range(1, 500))

    assert render(parse(chain + "{{end}}"), {"n": 499}) == "499"
