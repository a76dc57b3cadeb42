"""Names of the identities with which an install's runner shows up in its cloud.

The Stack creates them and the control plane expects them, so both read them here.
"""

import hashlib
from typing import Final

from exclave.domain.stacks import Cloud

_GCP_DIGITS: Final = 10
_GCP_KEY: Final = 16
"""What is left of the 30 characters of a service account's id."""
_GCP_KEY_DIGITS: Final = 12


def name_aws_role(install: str) -> str:
    """Return the name of the role that a runner's machine has on AWS."""
    return f"exclave-{install}-runner"


def name_azure_identity(install: str) -> str:
    """Return the name of the managed identity of a runner's machine on Azure."""
    return f"exclave-{install}-runner"


def digest_gcp_install(install: str) -> str:
    """Return what stands for an install in the names of its parts on Google Cloud."""
    return hashlib.sha256(install.encode()).hexdigest()[:_GCP_DIGITS]


def name_gcp_account(install: str, key: str = "runner") -> str:
    """Return the id of a service account of an install: at most 30 characters."""
    if len(key) > _GCP_KEY:
        key = hashlib.sha256(key.encode()).hexdigest()[:_GCP_KEY_DIGITS]
    return f"xc-{digest_gcp_install(install)}-{key}"


def name_gcp_email(install: str, project: str) -> str:
    """Return the email of a runner's service account."""
    return f"{name_gcp_account(install)}@{project}.iam.gserviceaccount.com"


def is_runner(cloud: Cloud, install: str, account: str, principal: str) -> bool:
    """Return whether a role, service account or identity is that of an install's runner."""
    match cloud:
        case Cloud.AWS:
            return principal == name_aws_role(install)
        case Cloud.GCP:
            return principal == name_gcp_email(install, account)
        case Cloud.AZURE:
            return principal.rpartition("/")[2] == name_azure_identity(install).lower()
        case Cloud.LOCAL:
            return False
