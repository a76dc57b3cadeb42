"""Tables that occur in several kinds: repositories, var files, operation roles."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import NEW, REQUIRED, Dead, Table, table, tables, text

DEPRECATED_ARRAYS: Mapping[str, Dead] = {
    "var": Dead("Write the variables as a table: [vars] with name = value.", error=True),
    "env_var": Dead("Write the variables as a table: [env_vars] with NAME = value.", error=True),
}

OPERATIONS = ("provision", "reprovision", "deprovision", "deploy", "teardown", "trigger")


BUILD_TIMEOUT = "5m"
"""The default limit of a build's duration."""
DEPLOY_TIMEOUT = "60m"
"""How long a deploy may take where the app does not say."""
ACTION_TIMEOUT = "5m"
"""How long an action may take where the app does not say."""
NAMESPACE = "{{.nuon.install.id}}"
"""The namespace of a component in a cluster, if it names none."""
HERE = "."
"""The `repo` of sources that lie in the app directory itself."""


class Repo(Table):
    """Where source code lies: a folder of a repository at a branch, tag or commit."""

    repo: str = text(
        "`owner/name`, or a full https URL; `.` is the app directory itself (in `public_repo`).",
        '"acme/charts"',
        need=REQUIRED,
        format="repo",
    )
    directory: str = text("The folder in the repository; `.` is its root.", '"."', need=REQUIRED)
    branch: str = text(
        "A branch, a tag or a commit; not needed for the app directory.",
        '"main"',
        need=REQUIRED,
        unless=("repo", HERE),
    )


class Repos(Table):
    """The two ways to name a repository; a table takes at most one of them."""

    public_repo: Repo | None = table(Repo, "A repository that everybody can read.")
    connected_repo: Repo | None = table(
        Repo, "A private repository that the vendor has connected to the platform."
    )

    @property
    def repo(self) -> Repo | None:
        """The repository that is named, if there is one."""
        return self.connected_repo or self.public_repo


class VarFile(Table):
    """A file of Terraform variables."""

    contents: str = text(
        "tfvars text (HCL, or JSON if it parses as JSON), or the file that holds it.",
        '"./values/main.tfvars"',
        templated=True,
        reference=True,
        need=REQUIRED,
    )


class OperationRole(Table):
    """The role that one operation of one thing runs with."""

    operation: str = text("What is done.", choices=OPERATIONS, need=REQUIRED, since=NEW)
    role: str = text(
        "The name of a role, as it is written in permissions or break_glass.",
        '"{{.nuon.install.id}}-deploy"',
        templated=True,
        need=REQUIRED,
        since=NEW,
    )


class RoleRules(Table):
    """A thing whose operations may each have a role."""

    OPERATIONS: ClassVar[tuple[str, ...]] = ()

    operation_roles: tuple[OperationRole, ...] = tables(
        OperationRole, "Which role an operation runs with, instead of the usual one.", since=NEW
    )
