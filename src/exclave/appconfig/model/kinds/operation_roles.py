"""`operation_roles.toml`: which role each operation runs with, as one matrix."""

from exclave.appconfig.model.fields import NEW, REQUIRED, Table, tables, text
from exclave.appconfig.model.kinds.shared import OPERATIONS


class RoleRule(Table):
    """One cell of the matrix."""

    principal: str = text(
        "`nuon::sandbox`, `nuon::component:<name or *>` or `nuon::action:<name or *>`.",
        '"nuon::component:*"',
        need=REQUIRED,
        since=NEW,
    )
    operation: str = text("What is done.", choices=OPERATIONS, need=REQUIRED, since=NEW)
    role: str = text(
        "The name of a role, as it is written in permissions or break_glass.",
        '"{{.nuon.install.id}}-deploy"',
        need=REQUIRED,
        since=NEW,
        templated=True,
    )


class OperationRoles(Table):
    """Which role each operation runs with."""

    type: str = text("The only form.", choices=("matrix",), default="matrix", since=NEW)
    rules: tuple[RoleRule, ...] = tables(RoleRule, "The cells.", since=NEW)
