"""HCL as far as the runner reads it."""

from pathlib import Path

import pytest

from exclave.runner.terraform.hcl import is_expression, read_variable_types


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
