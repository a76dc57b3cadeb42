"""What a person reads when a template is wrong."""

import pytest

from exclave.template import TemplateProblem, parse, render

VALUES = {
    "nuon": {
        "install": {"id": "inl1", "name": "acme"},
        "inputs": {"inputs": None},
        "components": {"database": {"outputs": {"address": "db.local"}}},
    }
}


def fail(text: str) -> TemplateProblem:
    with pytest.raises(TemplateProblem) as caught:
        render(parse(text, name="values.yaml"), VALUES)
    return caught.value


def test_a_missing_key_is_named_with_its_path_place_and_the_nearest_key() -> None:
    problem = fail("host:\n  {{ .nuon.components.database.outputs.adress }}")

    assert problem.message == ".nuon.components.database.outputs.adress does not exist"
    assert problem.path == ".nuon.components.database.outputs.adress"
    assert (problem.file, problem.line, problem.column) == ("values.yaml", 2, 6)
    assert problem.advice == "Did you mean `address`?"
    assert str(problem).startswith("values.yaml:2:6: ")


def test_a_key_that_resembles_nothing_lists_what_is_there() -> None:
    assert fail("{{.nuon.install.xyz}}").advice == ".nuon.install has `id`, `name`."


def test_a_key_below_null_says_that_it_is_null() -> None:
    problem = fail("{{.nuon.inputs.inputs.region}}")

    assert (
        problem.message
        == ".nuon.inputs.inputs is null, so .nuon.inputs.inputs.region does not exist"
    )


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{{with .nuon.install}}{{.nmae}}{{end}}", ".nuon.install.nmae"),
        ("{{range .nuon.components}}{{.status}}{{end}}", ".nuon.components[…].status"),
        ("{{$c := .nuon.install}}{{$c.nmae}}", "$c.nmae"),
        ("{{with .nuon}}{{$.nuon.nope}}{{end}}", ".nuon.nope"),
        ('{{(index .nuon.components "database").status}}', "(…).status"),
    ],
)
def test_the_path_is_followed_through_blocks(text: str, path: str) -> None:
    assert fail(text).path == path


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("{{.nuon.my-key}}", "index"),
        ("{{uper .nuon.install.id}}", "Did you mean `upper`?"),
        ("{{nuon.install.id}}", "it starts with a dot: `.nuon`"),
        ("{{$x}}", "Declare it"),
        ("{{if true}}", "{{end}}"),
        ("{{trunc 2.5 .nuon.install.id}}", "`int`"),
        ("{{eq 1 1.0}}", "`float64`"),
        ('{{index .nuon.inputs "inputs" "x"}}', "dig"),
    ],
)
def test_a_mistake_comes_with_advice(text: str, hint: str) -> None:
    assert hint in fail(text).advice


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a\nb {{ .nuon.install.id | nope }}", (2, 26 - 2 + 1)),
        ("{{if true}}\n{{else}}\n{{else}}\n{{end}}", (3, 3)),
        ("{{upper\n  3}}", (2, 3)),
        ("é {{ .x }}", (1, 6)),
    ],
)
def test_a_problem_points_at_its_place(text: str, place: tuple[int, int]) -> None:
    problem = fail(text)

    assert (problem.line, problem.column) == place


def test_the_facts_are_machine_readable() -> None:
    problem = fail("{{.nuon.nope}}")

    assert problem.code == "template_invalid"
    assert problem.facts == {"file": "values.yaml", "line": 1, "column": 3, "path": ".nuon.nope"}
