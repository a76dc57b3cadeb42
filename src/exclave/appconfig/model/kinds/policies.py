"""`policies.toml`, `policies/`: rules that plans, manifests and images must pass."""

from collections.abc import Mapping

from exclave.appconfig.model.fields import NEW, REQUIRED, Table, tables, text, texts

CLUSTER = "kubernetes_cluster"
COMPONENT_POLICIES = (
    "terraform_module", "helm_chart", "kubernetes_manifest", "container_image", "docker_build",
    "pulumi",
)  # fmt: skip
IMAGE_POLICIES = ("container_image", "docker_build")
"""Those that look at an image when it is built; the others look at plans."""
OLD_POLICIES: Mapping[str, str] = dict.fromkeys(
    ("runner_job_terraform_deploy", "runner_job_helm_deploy", "runner_job_action_workflow"), ""
)
"""Types that never had an effect, and have none today."""


class Policy(Table):
    """A rule that plans, manifests or images must pass."""

    type: str = text(
        "What it looks at.",
        '"terraform_module"',
        need=REQUIRED,
        choices=(CLUSTER, *COMPONENT_POLICIES, "sandbox"),
        old_choices=OLD_POLICIES,
    )
    engine: str = text(
        "`kyverno` for kubernetes_cluster, `opa` for all others; absent: kyverno.",
        choices=("kyverno", "opa"),
        default="kyverno",
        example='"opa"',
        since=NEW,
    )
    name: str = text("Absent: the name of the file.", '"no_public_buckets"', since=NEW)
    components: tuple[str, ...] = texts(
        'The components it looks at, or `["*"]`; needed for component types.', '["*"]', since=NEW
    )
    contents: str = text(
        "Kyverno YAML or Rego (`package nuon`), or the file that holds it.",
        '"./buckets.rego"',
        need=REQUIRED,
        templated=True,
        reference=True,
    )


class PoliciesFile(Table):
    """All policies in one file."""

    policy: tuple[Policy, ...] = tables(Policy, "The policies.")
