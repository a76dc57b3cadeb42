"""The page on troubleshooting quotes what the product really prints."""

import re

from docs.generate import list_problems
from exclave.domain.jobs import Reason
from tests.unit.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs/how-to/troubleshoot.md")
ENROLMENT = "A machine in a cloud does not enrol"
SECTIONS = (
    "Work does not start",
    "A Stack in a cloud does not come up",
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


def test_every_reason_to_refuse_a_machine_is_explained() -> None:
    folder = ROOT / "src" / "exclave" / "control" / "attest"
    source = "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.py"))
    reasons = set(re.findall(r'EvidenceRefused\("(\w+)"', source))

    explained = {
        name for cell in PAGE.first_cells(ENROLMENT) for name in re.findall(r"`(\w+)`", cell)
    }
    assert reasons - explained == set()
    assert len(reasons) > 5
