"""The source of each tool: its vendor's downloads, its Go module, known versions."""

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class Packing(StrEnum):
    """What a vendor's file is."""

    PROGRAM = "program"
    ZIP = "zip"
    TAR_GZ = "tar.gz"


@dataclass(frozen=True, slots=True)
class Vendor:
    """How to get one tool. In texts, `{v}`, `{os}` and `{arch}` are filled in."""

    name: str
    default: str
    """The version to install if none is asked for and none is installed."""
    folder: str
    """The address of the folder that holds a release."""
    file: str
    sums: str
    """The file of SHA-256 sums beside it."""
    packing: Packing
    member: str = ""
    """The path of the program in the archive; empty if it is the name of the tool."""
    ask_version: tuple[str, ...] = ("version",)
    """Arguments that make the program print its version and do nothing else."""
    oldest: str = ""
    """The oldest version that works with the runner; empty for all."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Versions that are never used, and why."""
    module: str = ""
    """The Go module with the source; empty if it cannot be built from its module alone."""
    package: str = "."
    module_sums: Mapping[str, str] = field(default_factory=dict)
    """The `h1:` sum of the module by version; its go.sum pins everything else."""
    version_variable: str = ""
    """The Go variable that a build sets to the version, where the module does not know it."""

    def fill(self, text: str, version: str) -> str:
        """Return a text with version, system and architecture filled in."""
        arch = _ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower())
        return text.format(v=version, os=sys.platform, arch=arch)


VENDORS: dict[str, Vendor] = {
    vendor.name: vendor
    for vendor in (
        Vendor(
            name="terraform",
            default="1.11.4",
            folder="https://releases.hashicorp.com/terraform/{v}",
            file="terraform_{v}_{os}_{arch}.zip",
            sums="terraform_{v}_SHA256SUMS",
            packing=Packing.ZIP,
            # Its backends are separate modules that no module proxy serves.
        ),
        Vendor(
            name="tofu",
            default="1.12.6",
            folder="https://github.com/opentofu/opentofu/releases/download/v{v}",
            file="tofu_{v}_{os}_{arch}.zip",
            sums="tofu_{v}_SHA256SUMS",
            packing=Packing.ZIP,
            module="github.com/opentofu/opentofu",
            package="./cmd/tofu",
            module_sums={"1.12.6": "h1:0VT4P8pMmGcCUnQ9JDrJ+Qg2d35Vzm4FFd/9+H7oF98="},
        ),
        Vendor(
            name="opa",
            default="1.22.0",
            folder="https://github.com/open-policy-agent/opa/releases/download/v{v}",
            file="opa_{os}_{arch}_static",
            sums="opa_{os}_{arch}_static.sha256",
            packing=Packing.PROGRAM,
            module="github.com/open-policy-agent/opa",
            module_sums={"1.22.0": "h1:CwxTSHfk5GmA1CaySVWyxRvggY2xZYxKL6bhDuWOCuU="},
        ),
        Vendor(
            name="helm",
            default="4.3.1",
            folder="https://get.helm.sh",
            file="helm-v{v}-{os}-{arch}.tar.gz",
            sums="helm-v{v}-{os}-{arch}.tar.gz.sha256sum",
            packing=Packing.TAR_GZ,
            member="{os}-{arch}/helm",
            # After a killed upgrade, Helm 3 keeps fields of the dead revision in live objects.
            oldest="4.1.0",
            broken={"4.2.1": "it does not wait for hooks and deletions (helm/helm#32224)"},
            module="helm.sh/helm/v4",
            package="./cmd/helm",
            module_sums={"4.3.1": "h1:UndCoLe9UPmNoL7IvWzaUXveL7T5t/ijoorEmgJdI9g="},
            version_variable="helm.sh/helm/v4/internal/version.version",
        ),
        Vendor(
            name="kubectl",
            default="1.37.1",
            folder="https://dl.k8s.io/release/v{v}/bin/{os}/{arch}",
            file="kubectl",
            sums="kubectl.sha256",
            packing=Packing.PROGRAM,
            ask_version=("version", "--client"),
            # Its package is in the module of all of Kubernetes, which needs replacements to build.
        ),
    )
}
