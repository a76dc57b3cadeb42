"""The job that checks secrets and copies them into a cluster."""

from exclave.appconfig.model.kinds.secrets import Secret, SyncTarget
from exclave.jobspec.secrets import make_secrets_job
from exclave.wire.kubernetes import KubeconfigCluster
from exclave.wire.specs import SecretTarget
from tests.unit.jobspec.jobspec_kit import render

CLUSTER = KubeconfigCluster()
PLAIN = Secret(name="token", required=True)
OLD = Secret(
    name="db",
    kubernetes_sync=True,
    kubernetes_secret_namespace="ins_1",
    kubernetes_secret_name="db",
    format="base64",
)
SEVERAL = Secret(
    name="key",
    kubernetes_sync_targets=(SyncTarget(namespaces=("a", "b"), name="keys", key="main"),),
)


def test_a_secret_goes_where_the_app_says_and_its_value_is_nowhere() -> None:
    spec = make_secrets_job([PLAIN, OLD, SEVERAL], render, CLUSTER)

    assert [secret.name for secret in spec.secrets] == ["token", "db", "key"]
    assert spec.targets == [
        SecretTarget(secret="db", namespace="ins-1", name="db", key="value", base64=True),
        SecretTarget(secret="key", namespace="a", name="keys", key="main"),
        SecretTarget(secret="key", namespace="b", name="keys", key="main"),
    ]
    assert spec.cluster == CLUSTER


def test_readers_of_a_secret_are_restarted_only_where_the_app_asks_for_it() -> None:
    asked = Secret(
        name="key",
        restart=True,
        kubernetes_sync_targets=(SyncTarget(namespaces=("a",), name="keys", key="main"),),
    )

    assert [t.restart for t in make_secrets_job([asked], render, CLUSTER).targets] == [True]
    assert [t.restart for t in make_secrets_job([OLD], render, CLUSTER).targets] == [False]


def test_secrets_that_go_nowhere_need_no_cluster() -> None:
    spec = make_secrets_job([PLAIN], render)

    assert (spec.targets, spec.cluster) == ([], None)
