"""`secrets.toml`, `secrets/`: secrets that live in the customer's account only."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import (
    NEW,
    REQUIRED,
    WANTED,
    Dead,
    Table,
    anything,
    flag,
    tables,
    text,
    texts,
)


class SyncTarget(Table):
    """A Kubernetes Secret that receives the value."""

    namespaces: tuple[str, ...] = texts(
        "The namespaces.", '["app"]', need=REQUIRED, since=NEW, templated=True
    )
    name: str = text("The Secret.", '"db"', need=REQUIRED, since=NEW, templated=True)
    key: str = text("The key in it.", '"password"', need=REQUIRED, since=NEW, templated=True)


class Secret(Table):
    """A secret that lives in the customer's account only."""

    DEAD: ClassVar[Mapping[str, Dead]] = {
        "user_configurable": Dead("Secrets are always set by the customer; remove the key."),
    }

    name: str = text(
        "Its ARN is `.nuon.install_stack.outputs.<name>_arn`.",
        '"db_password"',
        need=REQUIRED,
        templated=True,
        format="name",
    )
    display_name: str = text("The label.", '"Database password"', need=WANTED, templated=True)
    description: str = text("The explanation.", '"For the app"', need=WANTED, templated=True)
    required: bool = flag("The customer must give it; excludes auto_generate and default.")
    auto_generate: bool = flag("The Stack makes one up; excludes required and default.")
    default: str | None = anything("Used when the customer gives none.", '"none"')
    format: str = text("`base64` is decoded on the way into Kubernetes.", choices=("base64",))
    kubernetes_sync: bool = flag("Copy it into the cluster.")
    kubernetes_secret_namespace: str = text(
        "Where to; the key is always `value`.", '"app"', templated=True
    )
    kubernetes_secret_name: str = text("The Secret's name.", '"db-password"', templated=True)
    kubernetes_sync_targets: tuple[SyncTarget, ...] = tables(
        SyncTarget,
        "Several Secrets with keys of your choice; replaces the three keys above.",
        since=NEW,
    )
    restart: bool = flag(
        "Restart the workloads that read its Kubernetes Secrets when the value changes.", since=NEW
    )


class SecretsFile(Table):
    """All secrets in one file."""

    secret: tuple[Secret, ...] = tables(Secret, "The secrets.")
