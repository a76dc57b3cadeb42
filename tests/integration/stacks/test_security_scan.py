"""What a security scanner finds in a Stack is fixed, or accepted in a table with a reason."""

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
from exclave.stacks.azure.stack import AzureStack
from exclave.stacks.gcp.stack import GcpStack
from exclave.stacks.model import StackModel
from exclave.stacks.registry import CloudStack
from tests.support.aws_stacks import make_model as make_aws_model
from tests.support.azure_stacks import FULL as AZURE_MODEL
from tests.support.gcp_stacks import make_model as make_gcp_model
from tests.support.python_tools import need_python_tool
from tests.unit.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "reference" / "security-scan.md")
AWS = "aws.template.json"
FORMS = {
    "CloudFormation": AWS,
    "AWS": "aws/main.tf.json",
    "Azure": "azure/main.tf.json",
    "Google": "google/main.tf.json",
}
"""The forms by their names in the table: a template, and the modules of three clouds."""
DOOR = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"}
AZURE_DOOR = {
    "name": "ssh", "priority": 100, "direction": "Inbound", "access": "Allow", "protocol": "Tcp",
    "source_port_range": "*", "destination_port_range": "22", "source_address_prefix": "*",
    "destination_address_prefix": "*",
}  # fmt: skip
GOOGLE_DOOR = {
    "name": "ssh", "network": "n", "source_ranges": ["0.0.0.0/0"],
    "allow": [{"protocol": "tcp", "ports": ["22"]}],
}  # fmt: skip
SEEDED = {
    "seeded.template.json": "CKV_AWS_24",
    "seeded_azure/main.tf.json": "CKV_AZURE_10",
    "seeded_google/main.tf.json": "CKV_GCP_2",
}
"""Files with a port for SSH that is open to everybody, and the check that has to find it."""
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
    """Write a Stack with something of everything for each cloud, and open doors."""
    files = {file.name: file.content for file in AwsStack().render(make_aws_model()).files}
    template = json.loads(files[AWS])
    seeded = copy.deepcopy(template)
    seeded["Resources"]["RunnerSecurityGroup"]["Properties"]["SecurityGroupIngress"] = [DOOR]
    write(folder / AWS, template)
    write(folder / "seeded.template.json", seeded)
    write_module(folder / "aws", AwsStack(), make_aws_model())
    write_module(folder / "azure", AzureStack(), AZURE_MODEL)
    write_module(folder / "google", GcpStack(), make_gcp_model())
    for cloud, kind, door in (
        ("azure", "azurerm_network_security_rule", AZURE_DOOR),
        ("google", "google_compute_firewall", GOOGLE_DOOR),
    ):
        write(folder / f"seeded_{cloud}" / "main.tf.json", {"resource": {kind: {"door": door}}})


def write_module(folder: Path, stack: CloudStack, model: StackModel) -> None:
    """Write the files of a module as one, which is what the scanner can read."""
    texts = (
        file.content
        for file in stack.render(model).files
        if file.name.startswith("terraform/") and file.name.endswith(".json")
    )
    write(folder / "main.tf.json", merge([json.loads(text) for text in texts]))


def write(file: Path, content: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content))


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
    forms = {f"/{file}": form for form, file in FORMS.items()}
    return {
        Finding(
            item["check_id"],
            forms.get(item["file_path"], item["file_path"].lstrip("/")),
            item["resource"].rpartition(".")[2],
        )
        for report in reports
        for item in report["results"]["failed_checks"]
    }


def test_the_scanner_read_all_forms_and_would_see_an_open_door(
    reports: list[dict[str, Any]], findings: set[Finding]
) -> None:
    summaries = [report["summary"] for report in reports]

    assert [summary["parsing_errors"] for summary in summaries] == [0, 0]
    assert min(summary["passed"] for summary in summaries) > 50
    assert {(finding.form, finding.check) for finding in findings} >= {*SEEDED.items()}


def test_every_finding_is_accepted_with_a_reason_and_no_reason_is_left_over(
    findings: set[Finding],
) -> None:
    table = read_table()
    ours = {finding for finding in findings if finding.form in FORMS}

    new = {finding for finding in ours if not any(row.covers(finding) for row in table)}
    needless = [row for row in table if not any(row.covers(finding) for finding in ours)]
    assert new == set(), "fix them, or write into the table why they are right"
    assert needless == [], "these are not found any more: remove the rows"
    assert {row.form for row in table} == {*FORMS}
