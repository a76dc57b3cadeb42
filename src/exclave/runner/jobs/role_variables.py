"""Which variables of a job's role the app cannot replace, and which make a job leave its role.

The app is the vendor's, the account the customer's. So what points to the endpoint of the job, or
keeps commands from the identity of the machine, is the runner's alone. Credentials of the app's own
open nothing in the customer's account that the customer did not give away: they are allowed, and
the log of the job says that it uses them.
"""

from collections.abc import Callable, Mapping
from typing import Final

RUNNER_ONLY: Final = frozenset(
    {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_EC2_METADATA_DISABLED",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "GCE_METADATA_HOST",
        "GCE_METADATA_IP",
        "GCE_METADATA_ROOT",
        "ARM_MSI_ENDPOINT",
        "IDENTITY_ENDPOINT",
        "IDENTITY_HEADER",
        "IDENTITY_SERVER_THUMBPRINT",
        "IMDS_ENDPOINT",
        "MSI_ENDPOINT",
        "MSI_SECRET",
        "AZURE_POD_IDENTITY_AUTHORITY_HOST",
    }
)
"""Some are never set: SDKs read them before the ones that are."""
OTHER_IDENTITY: Final = frozenset(
    {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CREDENTIALS",
        "GOOGLE_OAUTH_ACCESS_TOKEN",
        "CLOUDSDK_AUTH_ACCESS_TOKEN",
        "ARM_USE_MSI",
        "ARM_CLIENT_ID",
        "ARM_CLIENT_SECRET",
        "ARM_OIDC_TOKEN",
        "AZURE_CLIENT_ID",
        "AZURE_CLIENT_SECRET",
        "AZURE_FEDERATED_TOKEN_FILE",
    }
)
"""With these, SDKs find other credentials before those of the role."""


def keep_role(layer: Mapping[str, str], warn: Callable[[str], None]) -> dict[str, str]:
    """Return a layer of the app without what only the runner sets; `warn` gets its conflicts."""
    for name in sorted(RUNNER_ONLY & layer.keys()):
        warn(f"warning: `{name}` is set by the runner; the job's value is not used")
    for name in sorted(OTHER_IDENTITY & layer.keys()):
        warn(f"warning: `{name}` is set by the app; what reads it may not act as the job's role")
    return {name: value for name, value in layer.items() if name not in RUNNER_ONLY}
