"""`runner.toml`: the process in the customer's account that does the work."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import NEW, REQUIRED, Dead, Table, text, text_map
from exclave.appconfig.model.kinds.shared import DEPRECATED_ARRAYS

CLOUDS: Mapping[str, str] = {
    "aws": "aws", "aws-ecs": "aws", "aws-eks": "aws",
    "azure": "azure", "azure-aks": "azure", "azure-acs": "azure",
    "gcp": "gcp", "local": "local",
}  # fmt: skip


class Runner(Table):
    """The process in the customer's account that does the work; its type sets the cloud."""

    DEAD: ClassVar[Mapping[str, Dead]] = DEPRECATED_ARRAYS

    runner_type: str = text(
        "The cloud of the whole app.",
        '"aws"',
        need=REQUIRED,
        choices=("aws", "azure", "gcp", "local"),
        old_choices={name: cloud for name, cloud in CLOUDS.items() if name != cloud},
    )
    helm_driver: str = text(
        "Without effect: Helm keeps releases in Secrets.", choices=("configmap", "secret")
    )
    init_script_url: str = text(
        "Without effect: the machine of a Stack has a script of its own.",
        '"https://example.com/init.sh"',
        format="url",
    )
    env_vars: Mapping[str, str] = text_map(
        "Without effect: write env_vars where they are needed.", '{ LOG_LEVEL = "info" }'
    )
    instance_type: str = text("The size of the machine.", '"t3a.medium"', since=NEW)
    phone_home_script_url: str = text(
        "Without effect: the runner reports the outputs of the Stack.",
        '"https://example.com/home.sh"',
        since=NEW,
        format="url",
    )
    runner_api_url: str = text(
        "Without effect: the control plane knows its Runner API.",
        '"https://runner.example.com"',
        since=NEW,
        format="url",
    )
    public_api_url: str = text(
        "Without effect: the runner needs the Runner API only.",
        '"https://api.example.com"',
        since=NEW,
        format="url",
    )
    source: str = text("A TOML file whose keys are merged over these.", '"shared/runner.toml"')

    @property
    def cloud(self) -> str:
        """The cloud: aws, azure, gcp or local."""
        return CLOUDS.get(self.runner_type, "")
