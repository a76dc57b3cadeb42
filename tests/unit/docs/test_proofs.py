"""The page on proofs in a real account lists the steps that the scripts take."""

import re

from tests.unit.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "how-to" / "prove-a-stack.md")
_STEP = re.compile(r'^ *prove "([^"]+)"$', re.MULTILINE)


def test_the_page_lists_every_step_of_the_scripts_and_no_other() -> None:
    scripts = (ROOT / "deploy" / "prove").glob("*.sh")
    steps = {step for script in scripts for step in _STEP.findall(script.read_text())}

    section = PAGE.section("What the scripts prove")
    rows = set(re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)) - {"step"}
    assert rows == steps
    assert len(steps) > 10
