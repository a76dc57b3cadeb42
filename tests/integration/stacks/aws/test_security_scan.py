"""What a security scanner finds in a Stack for AWS is fixed, or accepted in a table with a reason."""

import copy
import fnmatch
import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from exclave.stacks.aws.stack import AwsStack
from tests.support.aws_stacks import make_model
from tests.support.python_tools import need_python_tool
from tests.unit.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "reference" / "security-scan.md")
FORMS = {"CloudFormation": "/aws.template.json", "Terraform": "/terraform/main.tf.json"}
SEEDED = "/seeded.template.json"
OPEN_DOOR = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"}
OPEN_TO_ALL = "CKV_AWS_24"
_ROW = re.compile(r"^\| `(CKV\w+)` \| (\w+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


class Finding(NamedTuple):
    """A check that failed for a resource of a form."""

    check: str
    form: str
    resource: str


class Row(NamedTuple):
    """A line of the table: resources by name or pattern."""

    check: str
    form: str
    resources: tuple[str, ...]
    reason: str

    def covers(self, finding: Finding) -> bool:
        return (self.check, self.form) == finding[:2] and any(
            fnmatch.fnmatchcase(finding.resource, pattern) for pattern in self.resources
        )


def read_table() -> list[Row]:
    return [
        Row(check, form, tuple(re.findall(r"`([^`]+)`", resources)), reason.strip())
        for check, form, resources, reason in _ROW.findall(PAGE.text)
    ]


def write_forms(folder: Path) -> None:
    """Write a Stack with something of everything, and one with a door that was left open."""
    files = {file.name: file.content for file in AwsStack().render(make_model()).files}
    template = json.loads(files["aws.template.json"])
    (folder / FORMS["CloudFormation"].lstrip("/")).write_text(json.dumps(template))
    (folder / "terraform").mkdir()
    modules = [json.loads(text) for name, text in files.items() if name.startswith("terraform/")]
    (folder / FORMS["Terraform"].lstrip("/")).write_text(json.dumps(merge(modules)))
    seeded = copy.deepcopy(template)
    group = seeded["Resources"]["RunnerSecurityGroup"]["Properties"]
    group["SecurityGroupIngress"] = [OPEN_DOOR]
    (folder / SEEDED.lstrip("/")).write_text(json.dumps(seeded))


def merge(modules: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the files of a module as one, without its settings, which the scanner cannot read."""
    whole: dict[str, Any] = {}
    for module in modules:
        for block, names in module.items():
            for name, body in names.items():
                known = whole.setdefault(block, {}).setdefault(name, {})
                known.update(body if isinstance(body, Mapping) else {})
    del whole["terraform"]
    return whole


def scan(folder: Path) -> list[dict[str, Any]]:
    """Return what the scanner reports, one report for each language."""
    argv = [
        *(str(need_python_tool("checkov")), "-d", str(folder), "--skip-download", "--quiet"),
        *("--framework", "cloudformation", "terraform_json", "-o", "json"),
    ]
    env = {"PATH": os.defpath, "HOME": str(folder)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    reports = json.loads(done.stdout)
    assert isinstance(reports, list), done.stderr
    return reports


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("scan")
    write_forms(folder)
    return scan(folder)


@pytest.fixture(scope="module")
def findings(reports: list[dict[str, Any]]) -> set[Finding]:
    forms = {file: form for form, file in FORMS.items()} | {SEEDED: SEEDED}
    return {
        Finding(item["check_id"], forms[item["file_path"]], item["resource"].rpartition(".")[2])
        for report in reports
        for item in report["results"]["failed_checks"]
    }


def test_the_scanner_read_both_forms_and_would_see_an_open_door(
    reports: list[dict[str, Any]], findings: set[Finding]
) -> None:
    summaries = [report["summary"] for report in reports]

    assert [summary["parsing_errors"] for summary in summaries] == [0, 0]
    assert min(summary["passed"] for summary in summaries) > 50
    assert Finding(OPEN_TO_ALL, SEEDED, "RunnerSecurityGroup") in findings


def test_every_finding_is_accepted_with_a_reason_and_no_reason_is_left_over(
    findings: set[Finding],
) -> None:
    table = read_table()
    ours = {finding for finding in findings if finding.form != SEEDED}

    new = {finding for finding in ours if not any(row.covers(finding) for row in table)}
    needless = [row for row in table if not any(row.covers(finding) for finding in ours)]
    assert new == set(), "fix them, or write into the table why they are right"
    assert needless == [], "these are not found any more: remove the rows"
    assert table != []
