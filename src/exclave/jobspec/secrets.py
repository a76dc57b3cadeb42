"""The job that finds out which secrets the customer has provided."""

from collections.abc import Iterable

from exclave.appconfig.model.kinds.secrets import Secret
from exclave.jobspec.facts import Render
from exclave.wire.specs import SecretsSpec, WantedSecret


def make_secrets_job(secrets: Iterable[Secret], render: Render) -> SecretsSpec:
    """Return the job that checks an app's secrets."""
    return SecretsSpec(
        secrets=[
            WantedSecret(
                name=render(secret.name, "secret"),
                required=secret.required,
                auto_generate=secret.auto_generate,
                default=secret.default or "",
            )
            for secret in secrets
        ]
    )
