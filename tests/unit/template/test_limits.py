"""Work is counted by its size: a short loop over large values ends as soon as a long one."""

import pytest

from exclave.template import Limits, TemplateProblem, find_references, parse, render

VALUES = {
    "nuon": {
        "text": "é" * 50_000,
        "list": list(range(10_000)),
        "map": {f"key{number}": number for number in range(10_000)},
        "texts": ["x" * 50_000] * 100,
    }
}
FEW = Limits(steps=20_000)


@pytest.mark.parametrize(
    "body",
    [
        "len .nuon.text", "sha512sum .nuon.text", "adler32sum .nuon.text", "eq .nuon.text .nuon.text",
        "lt .nuon.text .nuon.text", "index .nuon.text 5", "trunc -5 .nuon.text", "trim .nuon.text",
        'contains "y" .nuon.text', "camelcase .nuon.text", "b64dec .nuon.text", "compact .nuon.list",
        "chunk 1 .nuon.list", "last .nuon.list", "keys .nuon.map", 'omit .nuon.map "a"',
        'pluck "a" .nuon.map', "values .nuon.map", "has .nuon.text .nuon.texts", "cat .nuon.texts",
        'regexMatch "^b" .nuon.text', 'regexMatch "((a{1,90}){1,90}){1,90}" "b"',
        'regexMatch "(a{1,90}){1,90}" "b"', "semver .nuon.text", "urlParse .nuon.text",
    ],
)  # fmt: skip
def test_a_function_costs_what_its_values_weigh(body: str) -> None:
    body = body.replace(".nuon", "$.nuon")
    template = parse(f"{{{{range until 100}}}}{{{{$x := {body}}}}}{{{{end}}}}")

    with pytest.raises(TemplateProblem, match=r"steps|larger than|semantic|first part"):
        render(template, VALUES, FEW)


def test_a_loop_over_a_map_costs_its_size() -> None:
    template = parse("{{range until 100}}{{range $.nuon.map}}{{break}}{{end}}{{end}}")

    with pytest.raises(TemplateProblem, match="steps"):
        render(template, VALUES, FEW)


def test_a_variable_that_is_far_away_costs_the_way() -> None:
    many = "".join(f"{{{{$v{number} := 1}}}}" for number in range(900))
    template = parse(many + "{{range 1000}}{{$_ := $v0}}{{end}}")

    with pytest.raises(TemplateProblem, match="steps"):
        render(template, {}, FEW)


def test_a_variable_may_be_assigned_as_often_as_one_likes() -> None:
    text = "{{$x := 1}}" + "{{$x = 2}}" * 2000 + "{{$x}}"

    assert render(parse(text), {}) == "2"


def test_a_template_of_too_many_parts_is_not_parsed() -> None:
    with pytest.raises(TemplateProblem, match="more than 100000 parts"):
        parse("{{1}}" * 50_000)


def test_a_pattern_of_too_many_groups_matches_nothing() -> None:
    pattern = "(a?)" * 200

    assert render(parse(f'{{{{regexMatch "{pattern}" "a"}}}}'), {}) == "false"


def test_a_path_is_followed_for_so_many_keys() -> None:
    deep = ".nuon" + ".a" * 100

    found = find_references(parse(f"{{{{$x := {deep}}}}}{{{{$x.b.c}}}}"))

    assert {len(each.path) for each in found} == {31}
    assert not any(each.exact for each in found)


def test_a_template_with_endless_combinations_is_given_up() -> None:
    many = "".join(f"{{{{$x = .nuon.a{number}}}}}" for number in range(60))

    found = find_references(parse("{{$x := .nuon}}" + many + "{{$x.b}}" * 5000))

    assert len(found) < 100_000
    assert (("nuon",), False) in {(each.path, each.exact) for each in found}
