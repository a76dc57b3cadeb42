# ruff: noqa: INP001 - programs beside the pages they write, not a package
"""The tables of the page about the Stack in Google Cloud, read off its Terraform module."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from docs.stack_pages.example import build_example
from exclave.domain.stacks import Cloud
from exclave.stacks.gcp.accounts import IMPERSONATE, READ_SECRETS, WRITE_LOG
from exclave.stacks.gcp.commands import INSTALLER_ROLES
from exclave.stacks.gcp.module import APIS, write_files
from exclave.stacks.gcp.variables import Variable, list_variables

MODEL = build_example(
    Cloud.GCP, "europe-west1", wanted_outputs=("gke_node_pool_sa_email", "registry")
)
PURPOSE = {
    "google_artifact_registry_repository": "copies of the app's images; only for apps that read it",
    "google_artifact_registry_repository_iam_member": "who may write to it and read from it",
    "google_compute_firewall": "nothing comes in; out go HTTPS and all to `cidr`",
    "google_compute_network": "the network, if you name none of yours",
    "google_compute_region_instance_group_manager": "keeps one machine running, none while stopped",
    "google_compute_region_instance_template": "the machine: Ubuntu 24.04, Shielded VM, no address",
    "google_compute_router": "carries the NAT",
    "google_compute_router_nat": "lets subnetworks reach out, and nothing in",
    "google_compute_subnetwork": "a private and a public one for the app, and the runner's own",
    "google_project_iam_custom_role": "the runner's three roles below; permissions of the app",
    "google_project_iam_member": "what the accounts may do in the project",
    "google_project_service": "switches on the APIs below; they stay on",
    "google_secret_manager_secret": "secrets and sensitive inputs, the document, the seal",
    "google_secret_manager_secret_iam_member": "who may read them, and add those that are made up",
    "google_secret_manager_secret_version": "the document, and values that you give",
    "google_service_account": "the runner's own account, and those of the app that jobs run with",
    "google_service_account_iam_member": "lets the runner take the app's accounts",
}


def list_tables() -> Mapping[str, Iterable[str]]:
    """Return the rows of each table by its placeholder in `gcp.txt`."""
    return {
        "RESOURCES": _write_resources(),
        "IMPERSONATE": _write_list(IMPERSONATE),
        "READ_SECRETS": _write_list(READ_SECRETS),
        "WRITE_LOG": _write_list(WRITE_LOG),
        "APIS": _write_list(f"{name}.googleapis.com" for name in APIS),
        "INSTALLER": _write_list(INSTALLER_ROLES),
        "PARAMETERS": map(_write_parameter, list_variables(MODEL)),
    }


def _write_resources() -> Iterator[str]:
    counts: Counter[str] = Counter()
    for text in write_files(MODEL).values():
        module: Any = json.loads(text)
        for kind, resources in module.get("resource", {}).items():
            counts[kind] += len(resources)
    for kind in sorted(counts):
        yield f"| `{kind}` | {counts[kind]} | {PURPOSE[kind]} |"


def _write_list(names: Iterable[str]) -> Iterator[str]:
    yield ", ".join(f"`{name}`" for name in names)


def _write_parameter(variable: Variable) -> str:
    default = "required" if variable.default is None else _write_code(variable.default)
    return f"| `{variable.name}` | {default} | {variable.about} |"


def _write_code(text: str) -> str:
    return f"`{json.dumps(text)[1:-1]}`" if text else ""
