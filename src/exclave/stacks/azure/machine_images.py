"""The image of the runner's machine: Ubuntu 24.04 of Canonical, for the machine's processor."""

import re

USUAL_MACHINE = "Standard_B2s"
PUBLISHER = "Canonical"
OFFER = "ubuntu-24_04-lts"
_ARM = re.compile(r"Standard_[A-Z]+[0-9]+(-[0-9]+)?[a-z]*p[a-z]*(_|$)")


def find_image(size: str) -> str:
    """Return the SKU of the image for a size of machine; the letter `p` means Arm."""
    return "server-arm64" if _ARM.match(size) else "server"
