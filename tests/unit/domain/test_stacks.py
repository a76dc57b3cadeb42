"""Facts that Stacks report, typed per cloud."""

from pathlib import Path

from exclave.domain.stacks import LocalFacts
from exclave.runner.stack.folder import StackFolder
from exclave.runner.stack.machine_facts import collect_facts


def test_a_local_stack_is_in_the_region_local_unless_it_reports_another() -> None:
    assert LocalFacts.from_report({}).to_outputs() == {"region": "local"}
    assert LocalFacts.from_report({"region": "rack"}).to_outputs() == {"region": "rack"}


def test_facts_of_a_newer_runner_are_kept_as_they_are() -> None:
    facts = LocalFacts.from_report({"hostname": "box", "gpu": "2", "others": "x"})

    assert (facts.hostname, facts.others) == ("box", {"gpu": "2", "others": "x"})
    assert facts.to_outputs() == {"region": "local", "hostname": "box", "gpu": "2", "others": "x"}


def test_every_fact_that_our_runner_collects_has_its_field(tmp_path: Path) -> None:
    collected = collect_facts(StackFolder(tmp_path), isolated=True)

    facts = LocalFacts.from_report(collected)

    assert facts.others == {}
    assert facts.to_outputs() == {"region": "local", **collected}
