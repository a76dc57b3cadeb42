"""The job that finds out which secrets the customer has provided, and puts them into a cluster."""

from collections.abc import Iterable, Sequence

from exclave.appconfig.model.kinds.secrets import Secret, SyncTarget
from exclave.jobspec.facts import Render
from exclave.jobspec.texts import render_label
from exclave.wire.kubernetes import ClusterRef
from exclave.wire.specs import SecretsSpec, SecretTarget, WantedSecret

_OLD_KEY = "value"
"""The key of a Secret that a secret without targets goes into."""


def make_secrets_job(
    secrets: Sequence[Secret], render: Render, cluster: ClusterRef | None = None
) -> SecretsSpec:
    """Return the job that checks an app's secrets and copies those that go into the cluster."""
    wanted = [
        WantedSecret(
            name=render(secret.name, "secret"),
            required=secret.required,
            auto_generate=secret.auto_generate,
            default=secret.default or "",
        )
        for secret in secrets
    ]
    if cluster is None:
        return SecretsSpec(secrets=wanted)
    targets = [target for secret in secrets for target in _list_targets(secret, render)]
    return SecretsSpec(secrets=wanted, targets=targets, cluster=cluster)


def goes_into_cluster(secret: Secret) -> bool:
    """Return whether a secret is copied into the cluster."""
    return secret.kubernetes_sync or bool(secret.kubernetes_sync_targets)


def _list_targets(secret: Secret, render: Render) -> Iterable[SecretTarget]:
    if not goes_into_cluster(secret):
        return
    where = f"secret {secret.name}"
    for target in secret.kubernetes_sync_targets or (_read_old_target(secret),):
        for namespace in target.namespaces:
            yield SecretTarget(
                secret=render(secret.name, where),
                namespace=render_label(render, namespace, f"{where}: namespace"),
                name=render(target.name, f"{where}: name of the Secret"),
                key=render(target.key, f"{where}: key"),
                base64=secret.format == "base64",
                restart=secret.restart,
            )


def _read_old_target(secret: Secret) -> SyncTarget:
    return SyncTarget(
        namespaces=(secret.kubernetes_secret_namespace,),
        name=secret.kubernetes_secret_name,
        key=_OLD_KEY,
    )
