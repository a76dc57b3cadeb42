"""The runner's machine: a template, and a group that keeps one of it running."""

from typing import Final

from exclave.base.json_values import JsonObject
from exclave.stacks.gcp.boot import write_boot_script
from exclave.stacks.gcp.expressions import PROJECT, REGION, write_account
from exclave.stacks.gcp.names import RUNNER, list_labels, write_prefix
from exclave.stacks.model import StackModel
from exclave.stacks.terraform.module_files import ModuleFiles

_ZONES: Final = 3
"""A group in a region is spread over three zones; one step of an update may touch each."""
_METADATA: Final = {
    "enable-oslogin": "TRUE",
    "block-project-ssh-keys": "TRUE",
    "serial-port-enable": "FALSE",
}
_WAY_OUT: Final = (
    "google_compute_router_nat.nat",
    "google_secret_manager_secret_version.stack",
    "google_secret_manager_secret_iam_member.stack_runner",
)
"""Without these the machine would start before it can reach or read anything."""


def add_machine(files: ModuleFiles, model: StackModel) -> None:
    """Add the template of the machine, and the group that replaces it if it is gone."""
    name = write_prefix(model)
    files.add_local("boot_script", write_boot_script(model))
    files.add_block(
        "resource", "google_compute_region_instance_template", RUNNER, _write_template(model)
    )
    template = "${google_compute_region_instance_template.runner.id}"
    group: JsonObject = {
        "project": PROJECT,
        "region": REGION,
        "name": f"{name}-runner",
        "base_instance_name": f"{name}-runner",
        "target_size": "${var.runner_enabled ? 1 : 0}",
        "version": [{"instance_template": template}],
        "update_policy": [
            {
                "type": "PROACTIVE",
                "minimal_action": "REPLACE",
                "replacement_method": "RECREATE",
                "instance_redistribution_type": "NONE",
                "max_surge_fixed": 0,
                "max_unavailable_fixed": _ZONES,
            }
        ],
        "depends_on": list(_WAY_OUT),
    }
    files.add_block("resource", "google_compute_region_instance_group_manager", RUNNER, group)


def _write_template(model: StackModel) -> JsonObject:
    key: JsonObject = {
        "for_each": "${local.keys}",
        "content": [{"kms_key_self_link": "${disk_encryption_key.value}"}],
    }
    disk: JsonObject = {
        "source_image": "${var.image}",
        "disk_size_gb": "${var.disk_gib}",
        "disk_type": "pd-balanced",
        "boot": True,
        "auto_delete": True,
        "labels": dict(list_labels(model)),
        "dynamic": {"disk_encryption_key": [key]},
    }
    return {
        "project": PROJECT,
        "region": REGION,
        "name_prefix": f"{write_prefix(model)}-",
        "machine_type": "${var.machine_type}",
        "can_ip_forward": False,
        "labels": dict(list_labels(model)),
        "metadata": {**_METADATA, "startup-script": "${local.boot_script}"},
        "disk": [disk],
        # No access_config: the machine has no public address.
        "network_interface": [{"subnetwork": "${local.runner_subnetwork}"}],
        "service_account": [{"email": write_account(RUNNER), "scopes": ["cloud-platform"]}],
        "shielded_instance_config": [
            {
                "enable_secure_boot": True,
                "enable_vtpm": True,
                "enable_integrity_monitoring": True,
            }
        ],
        "lifecycle": {
            "create_before_destroy": True,
            "precondition": [
                {
                    "condition": '${var.network == "" || var.runner_subnetwork != ""}',
                    "error_message": "A network of yours needs runner_subnetwork too.",
                }
            ],
        },
    }
