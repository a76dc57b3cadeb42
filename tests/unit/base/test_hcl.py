"""HCL that we write: what others told is a string in it, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.base.hcl import Attribute, Index, escape, quote, write_block, write_traversal
from exclave.base.hcl_lexer import PieceKind, split_hcl


@given(st.text())
def test_any_text_is_one_quoted_piece_of_printable_characters(text: str) -> None:
    quoted = quote(text)

    assert [(piece.kind, piece.text) for piece in split_hcl(quoted)] == [(PieceKind.QUOTED, quoted)]
    assert quoted.isprintable()


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    assert quote("a\ud800b") == '"a\\uFFFDb"'


def test_templates_are_doubled_and_characters_escaped() -> None:
    assert escape('${a} %{b} "c" \\ \n\x1b\U000e0041é') == (
        '$${a} %%{b} \\"c\\" \\\\ \\n\\u001b\\U000e0041é'
    )


@pytest.mark.parametrize("name", ["", "a b", "a.b", "1a", "-a", "a\n", "a}", "a*", 'a"', "a[0]"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not an identifier"):
        write_traversal((Attribute("a"), Attribute(name)))
    with pytest.raises(ValueError, match="is not an identifier"):
        write_block("import", {name: "x"})
    with pytest.raises(ValueError, match="is not an identifier"):
        write_block(name, {})


def test_a_block_has_labels_references_and_texts() -> None:
    to = (
        Attribute("module"),
        Attribute("m"),
        Index('k"'),
        Attribute("a-b"),
        Attribute("c"),
        Index(0),
    )

    assert write_block("moved", {"to": to, "id": "${x}"}, ['l"']) == (
        'moved "l\\"" {\n  to = module.m["k\\""].a-b.c[0]\n  id = "$${x}"\n}\n'
    )
