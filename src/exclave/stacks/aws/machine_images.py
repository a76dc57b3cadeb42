"""The image of the runner's machine: Ubuntu, by the parameter that its maker keeps current."""

import re

_IMAGE = "/aws/service/canonical/ubuntu/server/24.04/stable/current/{}/hvm/ebs-gp3/ami-id"
_ARM = re.compile(r"^(a1|[a-z]+[0-9]+g[a-z]*)\.")


def find_image(instance_type: str) -> str:
    """Return the SSM parameter with the image for the processor of a type of machine."""
    return _IMAGE.format("arm64" if _ARM.match(instance_type) else "amd64")
