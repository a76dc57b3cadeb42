"""`sandbox.toml`: the base infrastructure of an install."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import NEW, Dead, flag, number, tables, text, text_map
from exclave.appconfig.model.kinds.shared import (
    BUILD_TIMEOUT,
    DEPLOY_TIMEOUT,
    DEPRECATED_ARRAYS,
    Repos,
    RoleRules,
    VarFile,
)


class Sandbox(Repos, RoleRules):
    """The base infrastructure of an install: network, cluster, DNS."""

    DEAD: ClassVar[Mapping[str, Dead]] = DEPRECATED_ARRAYS
    OPERATIONS: ClassVar[tuple[str, ...]] = ("provision", "reprovision", "deprovision")

    type: str = text(
        "The tool that applies it.",
        '"pulumi"',
        choices=("terraform", "pulumi"),
        default="terraform",
        since=NEW,
    )
    terraform_version: str = text("Needed for terraform.", '"1.11.3"', format="version")
    runtime: str = text(
        "The language of the program; needed for pulumi.",
        '"go"',
        choices=("go", "nodejs", "python"),
        since=NEW,
    )
    pulumi_version: str = text("Absent: the latest.", '"3.140.0"', since=NEW, format="version")
    pulumi_config: Mapping[str, str] = text_map(
        "Pulumi configuration; keys are `namespace:key`.",
        '{ "gcp:project" = "acme" }',
        since=NEW,
        templated=True,
        format="pulumi_keys",
    )
    vars: Mapping[str, str] = text_map(
        "Terraform variables; they win over those of the platform.",
        '{ cluster_name = "n-{{.nuon.install.id}}" }',
        templated=True,
    )
    env_vars: Mapping[str, str] = text_map(
        "Environment of the tool.", '{ TF_LOG = "INFO" }', templated=True
    )
    var_file: tuple[VarFile, ...] = tables(
        VarFile, "Files of variables; each wins over those before it and over `vars`."
    )
    drift_schedule: str = text(
        "When to look for drift: cron with 5 fields. Absent: never.", '"0 6 * * *"', format="cron"
    )
    max_auto_retries: int = number("How often a failed run is repeated.", "2", since=NEW)
    skip_noops: bool = flag("Leave out the apply of a plan without changes.", since=NEW)
    auto_approve_on_policies_passing: bool = flag(
        "Approve a plan when all policies pass.", since=NEW
    )
    source: str = text("A TOML file whose keys are merged over these.", '"shared/sandbox.toml"')

    @property
    def build_timeout(self) -> str:
        """How long a build may take: the sandbox has no key for it, so the default counts."""
        return BUILD_TIMEOUT

    @property
    def deploy_timeout(self) -> str:
        """How long a deploy may take: the default, because the sandbox has no key for it."""
        return DEPLOY_TIMEOUT
