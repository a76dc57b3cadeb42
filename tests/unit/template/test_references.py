"""What a template can read, found without values."""

import pytest

from exclave.template import find_references, parse


def paths(text: str) -> set[str]:
    """Write references as dotted paths; `.*` where only the values decide what is read below."""
    return {
        ".".join(ref.path) + ("" if ref.exact else ".*") for ref in find_references(parse(text))
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", set()),
        ("{{.nuon.components.x.outputs.y}}", {"nuon.components.x.outputs.y"}),
        ('{{index .nuon.components "my-x" "outputs" "y"}}', {"nuon.components.my-x.outputs.y"}),
        ('{{(index .nuon.components "my-x").outputs.y}}', {"nuon.components.my-x.outputs.y"}),
        ('{{index (index .nuon.components "x") "outputs"}}', {"nuon.components.x.outputs"}),
        ("{{with .nuon.install}}{{.id}}{{$.nuon.org.id}}{{end}}", {"nuon.install", "nuon.install.id", "nuon.org.id"}),
        ("{{$c := .nuon.components.x}}{{$c.outputs.y}}", {"nuon.components.x", "nuon.components.x.outputs.y"}),
        ("{{range .nuon.l}}{{.name}}{{end}}", {"nuon.l", "nuon.l.*"}),
        ("{{range $k, $v := .nuon.l}}{{$k}}{{$v.name}}{{end}}", {"nuon.l", "nuon.l.*"}),
        ("{{index .nuon.components .nuon.name}}", {"nuon.components.*", "nuon.name"}),
        ("{{if .nuon.a}}{{.nuon.b}}{{else if .nuon.c}}{{else}}{{.nuon.d}}{{end}}", {"nuon.a", "nuon.b", "nuon.c", "nuon.d"}),
        ("{{.nuon.a | default .nuon.b | quote}}", {"nuon.a", "nuon.b"}),
        ("{{(or .nuon.a .nuon.b).c}}", {"nuon.a", "nuon.b", "nuon.a.c", "nuon.b.c"}),
        ('{{dig "outputs" "y" "none" .nuon.components.x}}', {"nuon.components.x.outputs.y"}),
        ('{{.nuon.components.x | dig "outputs" "y" "none"}}', {"nuon.components.x.outputs.y"}),
        ('{{get .nuon.labels "tier"}}', {"nuon.labels.tier"}),
        ('{{if hasKey .nuon.labels "tier"}}{{end}}', {"nuon.labels.tier"}),
        ('{{define "p"}}{{.outputs.y}}{{end}}{{template "p" .nuon.components.x}}', {"nuon.components.x", "nuon.components.x.outputs.y"}),
        ('{{block "p" .nuon.components.x}}{{.outputs.y}}{{end}}', {"nuon.components.x", "nuon.components.x.outputs.y"}),
        ('{{define "p"}}{{.nuon.a}}{{end}}', set()),
        ("{{$x := .nuon.a}}{{if true}}{{$x = .nuon.b}}{{end}}{{$x.c}}", {"nuon.a", "nuon.b", "nuon.a.c", "nuon.b.c"}),
        ("{{$x := .nuon.a}}{{range .nuon.l}}{{$x.c}}{{$x = $.nuon.b}}{{end}}", {"nuon.a", "nuon.l", "nuon.a.c", "nuon.b", "nuon.b.c"}),
        ("{{(first .nuon.l).name}}", {"nuon.l", "nuon.l.name", "nuon.l.*"}),
        ("{{/* .nuon.comment */}}", set()),
        ("{{.nuon}}", {"nuon"}),
        ("{{toJson .}}", {"nuon"}),
        ("{{with .}}{{.nuon.a}}{{end}}", {"nuon.a"}),
    ],
)  # fmt: skip
def test_paths_are_followed(text: str, expected: set[str]) -> None:
    assert paths(text) == expected


def test_a_reference_has_its_place() -> None:
    (found,) = find_references(parse("a\n  {{ upper .nuon.a }}"))

    assert (found.path, found.line, found.column) == (("nuon", "a"), 2, 12)


def test_a_reference_tells_whether_the_value_itself_is_read() -> None:
    found = find_references(parse("{{with .nuon.a}}{{.b}}{{end}}"))

    assert [(ref.path[-1], ref.whole) for ref in found] == [("a", False), ("b", True)]


@pytest.mark.parametrize(
    ("text", "optional"),
    [
        ("{{.nuon.a}}", False),
        ('{{index .nuon "a"}}', True),
        ('{{dig "a" "x" .nuon}}', True),
        ('{{(index .nuon "b").a}}', False),
    ],
)
def test_a_reference_tells_whether_it_may_be_missing(text: str, optional: bool) -> None:
    (found,) = [ref for ref in find_references(parse(text)) if ref.path[-1] == "a"]

    assert found.optional is optional


def test_a_tangled_template_refers_to_everything() -> None:
    calls = "".join(f'{{{{template "p" .{key}}}}}' for key in "abcdefgh")
    text = f'{{{{define "p"}}}}{calls}{{{{end}}}}{{{{template "p" .nuon}}}}'

    assert "nuon.*" in paths(text)
