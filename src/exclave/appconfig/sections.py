"""The table of all files and folders of an app directory, and what is read from each."""

from collections.abc import Mapping
from dataclasses import dataclass

from exclave.appconfig.fields import Table
from exclave.appconfig.kinds.actions import Action
from exclave.appconfig.kinds.branches import Branch
from exclave.appconfig.kinds.components import Component
from exclave.appconfig.kinds.container_image import ContainerImage
from exclave.appconfig.kinds.helm_chart import HelmChart
from exclave.appconfig.kinds.inputs import Input, InputGroup, InputsFile
from exclave.appconfig.kinds.installs import Install, InstallsPointer
from exclave.appconfig.kinds.kubernetes_contexts import KubernetesContext, KubernetesContextsFile
from exclave.appconfig.kinds.kubernetes_manifest import KubernetesManifest
from exclave.appconfig.kinds.metadata import Metadata
from exclave.appconfig.kinds.operation_roles import OperationRoles
from exclave.appconfig.kinds.other_components import DockerBuild, Job, Pulumi
from exclave.appconfig.kinds.permissions import (
    BreakGlassFile,
    BreakGlassRole,
    NamedPolicy,
    PermissionsFile,
    Role,
)
from exclave.appconfig.kinds.policies import PoliciesFile, Policy
from exclave.appconfig.kinds.runbooks import Runbook
from exclave.appconfig.kinds.runner import Runner
from exclave.appconfig.kinds.sandbox import Sandbox
from exclave.appconfig.kinds.secrets import Secret, SecretsFile
from exclave.appconfig.kinds.stack import Stack
from exclave.appconfig.kinds.terraform_module import TerraformModule
from exclave.appconfig.kinds.triggers import TriggersFile

OWN = "."
"""The base of references is the folder of the file itself."""


@dataclass(frozen=True, slots=True)
class FileForm:
    """A section as one file."""

    path: str
    model: type[Table]
    base: str = ""


@dataclass(frozen=True, slots=True)
class FolderForm:
    """A section as a folder, with one thing per file."""

    path: str
    model: type[Table]
    base: str = ""
    without: str = ""
    """A folder below that belongs to another section."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an app, in one of its forms."""

    name: str
    file: FileForm | None = None
    folders: tuple[FolderForm, ...] = ()
    required: bool = False


SECTIONS: tuple[Section, ...] = (
    Section("metadata", FileForm("metadata.toml", Metadata), required=True),
    Section("sandbox", FileForm("sandbox.toml", Sandbox), required=True),
    Section("runner", FileForm("runner.toml", Runner), required=True),
    Section("stack", FileForm("stack.toml", Stack)),
    Section(
        "inputs",
        FileForm("inputs.toml", InputsFile),
        (FolderForm("input_groups", InputGroup), FolderForm("inputs", Input)),
    ),
    Section("secrets", FileForm("secrets.toml", SecretsFile), (FolderForm("secrets", Secret),)),
    Section(
        "permissions",
        FileForm("permissions.toml", PermissionsFile, "permissions"),
        (FolderForm("permissions", Role, "permissions", without="permissions/policies"),),
    ),
    Section("named_policies", folders=(FolderForm("permissions/policies", NamedPolicy, OWN),)),
    Section(
        "break_glass",
        FileForm("break_glass.toml", BreakGlassFile, "permissions"),
        (FolderForm("break_glass", BreakGlassRole, "permissions"),),
    ),
    Section(
        "policies",
        FileForm("policies.toml", PoliciesFile),
        (FolderForm("policies", Policy, OWN),),
    ),
    Section("operation_roles", FileForm("operation_roles.toml", OperationRoles)),
    Section(
        "kubernetes_contexts",
        FileForm("kubernetes_contexts.toml", KubernetesContextsFile),
        (FolderForm("kubernetes_contexts", KubernetesContext),),
    ),
    Section(
        "components", folders=(FolderForm("components", Component, "components"),), required=True
    ),
    Section("actions", folders=(FolderForm("actions", Action, "actions"),)),
    Section("runbooks", folders=(FolderForm("runbooks", Runbook),)),
    Section("branches", FileForm("branch.toml", Branch), (FolderForm("branches", Branch),)),
    Section("triggers", FileForm("triggers.toml", TriggersFile)),
    Section("installs", folders=(FolderForm("installs", Install, "installs"),)),
    Section("installs_source", FileForm("installs.toml", InstallsPointer)),
)

COMPONENT_TYPES: Mapping[str, type[Component]] = {
    each.TYPE: each
    for each in (
        TerraformModule, HelmChart, KubernetesManifest, ContainerImage, Pulumi, DockerBuild, Job,
    )
}  # fmt: skip

KNOWN_NAMES = frozenset(
    name
    for section in SECTIONS
    for name in (
        section.file.path if section.file else "",
        *(folder.path for folder in section.folders),
    )
    if name and "/" not in name
)
"""Names directly in the directory that are read."""
