"""What both forms know of the runner's machine."""

from collections.abc import Mapping
from dataclasses import dataclass

from exclave.stacks.aws.names import list_guarded_tags, write_prefix
from exclave.stacks.aws.references import Joined, ParameterRef, join_text
from exclave.stacks.model import StackModel

DEVICE = "/dev/sda1"
VOLUME = "gp3"
GRACE_S = 300


@dataclass(frozen=True, slots=True)
class MetadataOptions:
    """How the machine's metadata service is closed to everything but the machine itself."""

    endpoint: str = "enabled"
    tokens: str = "required"
    hops: int = 1
    """With one hop, containers on the machine get no answer."""
    tags: str = "disabled"


METADATA = MetadataOptions()


def write_image() -> Joined:
    """Return the image: looked up at each launch, so that a replaced machine gets the newest."""
    return join_text("resolve:ssm:", ParameterRef("ImageId"))


def write_log_name(model: StackModel) -> str:
    """Return the name of the group that the runner's log goes to."""
    return f"/exclave/{model.install_id}"


def list_machine_tags(model: StackModel) -> Mapping[str, str]:
    """Return the tags of the machine and its disk."""
    return {"Name": f"{write_prefix(model)}-runner", **list_guarded_tags(model)}
