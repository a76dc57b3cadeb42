"""The table of all files and folders of an app directory, and the type read from each."""

from collections.abc import Mapping
from dataclasses import dataclass

from exclave.appconfig.model.fields import Table
from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.branches import Branch
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.container_image import ContainerImage
from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.model.kinds.inputs import Input, InputGroup, InputsFile
from exclave.appconfig.model.kinds.installs import Install, InstallsPointer
from exclave.appconfig.model.kinds.kubernetes_contexts import (
    KubernetesContext,
    KubernetesContextsFile,
)
from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest
from exclave.appconfig.model.kinds.metadata import Metadata
from exclave.appconfig.model.kinds.operation_roles import OperationRoles
from exclave.appconfig.model.kinds.other_components import DockerBuild, Job, Pulumi
from exclave.appconfig.model.kinds.permissions import (
    BreakGlassFile,
    BreakGlassRole,
    NamedPolicy,
    PermissionsFile,
    Role,
)
from exclave.appconfig.model.kinds.policies import PoliciesFile, Policy
from exclave.appconfig.model.kinds.runbooks import Runbook
from exclave.appconfig.model.kinds.runner import Runner
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.secrets import Secret, SecretsFile
from exclave.appconfig.model.kinds.stack import Stack
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.appconfig.model.kinds.triggers import TriggersFile

OWN = "."
"""The base of references is the folder of the file itself."""


@dataclass(frozen=True, slots=True)
class FileForm:
    """A section in a single file."""

    path: str
    model: type[Table]
    base: str = ""


@dataclass(frozen=True, slots=True)
class FolderForm:
    """A section in a folder, with one part per file."""

    path: str
    model: type[Table]
    base: str = ""
    without: str = ""
    """A folder below that belongs to another section."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of an app and its possible forms."""

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
    component_type.TYPE: component_type
    for component_type in (
        TerraformModule,
        HelmChart,
        KubernetesManifest,
        ContainerImage,
        Pulumi,
        DockerBuild,
        Job,
    )
}

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
