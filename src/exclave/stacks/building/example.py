"""An install that no control plane has, for looking at a Stack before there is one."""

from typing import Final

from exclave.domain.stacks import Cloud
from exclave.stacks.base import SigningKey
from exclave.stacks.building.parts import InstallFacts
from exclave.stacks.model import AccountPin, ProgramPins

INSTALL: Final = "instexample0000000000000000000"
RUNNER_URL: Final = "https://runners.example.com"
_REGIONS: Final = {Cloud.AWS: "us-east-1", Cloud.AZURE: "eastus", Cloud.GCP: "us-central1"}
_PROJECT: Final = "example-project"
_NO_KEY: Final = SigningKey("example", "A" * 43)
_NO_PROGRAM: Final = ProgramPins("0.0.0", "0" * 64, "0" * 64)


def make_example(
    app: str, cloud: Cloud, region: str = "", runner_url: str = RUNNER_URL
) -> InstallFacts:
    """Return the facts of an example install of an app."""
    return InstallFacts(
        install_id=INSTALL,
        install="example",
        org_id="org_example",
        app=app,
        account=AccountPin(
            region=region or _REGIONS.get(cloud, ""),
            id=_PROJECT if cloud is Cloud.GCP else "",
        ),
        runner_url=runner_url,
        keys=(_NO_KEY,),
        program=_NO_PROGRAM,
    )
