"""The HCL lexer."""

from hypothesis import given
from hypothesis import strategies as st

from exclave.base.hcl import escape
from exclave.base.hcl_lexer import HclBroken, PieceKind, split_hcl

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
    assert [piece.text for piece in pieces if piece.kind is PieceKind.QUOTED] == [
        '"text ${f("inner } text", { x = 1 })} and $${not} \\" end"'
    ]
    heredocs = [piece.text for piece in pieces if piece.kind is PieceKind.HEREDOC]
    assert heredocs == ['<<-EOT\n  # no comment "\n  EOT']
    comments = [piece.text for piece in pieces if piece.kind is PieceKind.COMMENT]
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
