"""The page on troubleshooting quotes what the product really prints."""

from docs.generate import list_problems
from exclave.domain.jobs import Reason
from tests.unit.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs/how-to/troubleshoot.md")
SECTIONS = (
    "Work does not start",
    "A job failed",
    "Approvals are refused",
    "The command line",
    "A runner or Stack does not come up",
    "The control plane",
)


def test_every_symptom_is_a_code_a_reason_or_a_message_of_the_program() -> None:
    symptoms = [symptom for section in SECTIONS for symptom in PAGE.first_column(section)]
    names = {kind.code for kind in list_problems()} | set(Reason)
    source = "".join(
        file.read_text(encoding="utf-8") for file in sorted((ROOT / "src").rglob("*.py"))
    )

    unknown = [
        symptom
        for symptom in symptoms
        if symptom not in names and not all(piece.strip() in source for piece in symptom.split("…"))
    ]
    assert unknown == []
    assert len(symptoms) > 30
