"""HCL as far as the runner reads it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.base.hcl import escape
from exclave.runner.terraform.hcl import (
    HclBroken,
    Place,
    is_expression,
    read_variable_types,
    split_hcl,
)

TEXT = """
# a comment with "quotes" and {
a = "text ${f("inner } text", { x = 1 })} and $${not} \\" end" // more
b = <<-EOT
  # no comment "
  EOT
/* { */ c = [1]
"""


def test_pieces_together_are_the_text() -> None:
    pieces = list(split_hcl(TEXT))

    assert "".join(piece.text for piece in pieces) == TEXT
    assert [piece.text for piece in pieces if piece.place is Place.QUOTED] == [
        '"text ${f("inner } text", { x = 1 })} and $${not} \\" end"'
    ]
    heredocs = [piece.text for piece in pieces if piece.place is Place.HEREDOC]
    assert heredocs == ['<<-EOT\n  # no comment "\n  EOT']
    comments = [piece.text for piece in pieces if piece.place is Place.COMMENT]
    assert comments == ['# a comment with "quotes" and {', "// more", "/* { */"]


@given(st.text(alphabet='ab"\\${}%\n#/*<EOT() [],', max_size=40))
def test_any_text_is_cut_or_refused(text: str) -> None:
    try:
        pieces = list(split_hcl(text))
    except HclBroken:
        return
    assert "".join(piece.text for piece in pieces) == text


@given(st.text(max_size=40))
def test_an_escaped_text_is_one_quoted_piece(text: str) -> None:
    quoted = f'"{escape(text)}"'

    assert [piece.text for piece in split_hcl(quoted)] == [quoted]


@pytest.mark.parametrize(
    "text", ["[1]", '{ a = ")" }', "x", "(1)\n# )", '"${x["a"]}"', "<<A\n)\nA"]
)
def test_what_stands_in_parentheses(text: str) -> None:
    assert is_expression(text)


@pytest.mark.parametrize("text", ["", " ", "1)", "(", '"', "a) b = (c", "/* x", "<<A\n"])
def test_what_would_reach_out_of_parentheses(text: str) -> None:
    assert not is_expression(text)


def test_types_of_variables_decide_who_is_structured(tmp_path: Path) -> None:
    (tmp_path / "a.tf").write_text("""
variable "text" { type = string }
variable "list" {
  # type = string
  description = "type = string {"
  type = list(object({ type = string }))
  default = []
}
variable "plain" {}
variable "any" {
  validation {
    condition = length(var.any) > 0 && "${var.x["a"]}" == "}"
    error_message = <<EOT
variable "fake" { type = list(string) }
EOT
  }
  type        = any
}
variable "old" { type = "map" }
variable "nested" {
  default = { type = "x" }
}
variable bare { type = set(string) }
resource "x" "variable" { type = "y" }
""")
    (tmp_path / "b.tf.json").write_text(
        '{"variable": {"j": {"type": "map(string)"}, "k": {}, "l": [{"type": "number"}]}}'
    )
    (tmp_path / "broken.tf").write_text('variable "x" { type = "')
    (tmp_path / "broken.tf.json").write_text("{")
    (tmp_path / "folder.tf").mkdir()

    assert read_variable_types(tmp_path) == {
        "text": False,
        "list": True,
        "plain": False,
        "any": True,
        "old": True,
        "nested": False,
        "bare": True,
        "j": True,
        "k": False,
        "l": False,
    }
