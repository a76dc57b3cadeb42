"""`branch.toml`, `branches/`: versions of the app that follow a repository."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import (
    NEW,
    REQUIRED,
    Dead,
    Table,
    flag,
    number,
    table,
    tables,
    text,
    text_map,
    texts,
)
from exclave.appconfig.model.kinds.shared import Repos


class InstallGroup(Table):
    """Installs that get a version together."""

    DEAD: ClassVar[Mapping[str, Dead]] = {
        "use_for_previews": Dead("Write a [preview] table on the branch."),
    }

    name: str = text("Unique.", '"canary"', need=REQUIRED, since=NEW)
    order: int | None = number("When its turn is.", "1", default=None, since=NEW)
    label_selector: Mapping[str, str] = text_map(
        "Which installs; unique.", '{ tier = "canary" }', since=NEW
    )
    default: bool = flag("Takes all other installs; exactly one group does.", since=NEW)
    auto_approve_on_policies_passing: bool = flag(
        "Approve plans when all policies pass.", since=NEW
    )


class Preview(Table):
    """What happens for a pull request."""

    mode: str = text(
        "How far it goes.", choices=("none", "plan-only", "apply", "build-only"), since=NEW
    )
    install_id: str = text("Where to.", '"inl123"', since=NEW)
    install_name: str = text("Where to, by name.", '"staging"', since=NEW)
    label_selector: Mapping[str, str] = text_map(
        "Where to, by labels.", '{ tier = "preview" }', since=NEW
    )
    set_statuses: bool | None = flag("Report as commit statuses.", default=None, since=NEW)
    comment: bool | None = flag("Report as a comment.", default=None, since=NEW)
    ignore_drafts: bool | None = flag("Leave drafts alone.", default=None, since=NEW)
    react: bool | None = flag("React to comments.", default=None, since=NEW)


class Run(Table):
    """What starts a new version."""

    mode: str = text(
        "What starts it.", choices=("push", "on_tag", "on_github_label", "manual_only"), since=NEW
    )
    tag_prefix: str = text("For on_tag.", '"v"', since=NEW)
    github_label: str = text("For on_github_label.", '"release"', since=NEW)


class Branch(Repos):
    """A line of versions of the app that follows a repository."""

    DEAD: ClassVar[Mapping[str, Dead]] = {
        "use_for_previews": Dead("Write a [preview] table."),
    }

    name: str = text("Unique.", '"main"', need=REQUIRED)
    install_groups: tuple[InstallGroup, ...] = tables(
        InstallGroup, "Who gets a version, one group after the other.", since=NEW
    )
    preview: Preview | None = table(Preview, "What happens for a pull request.", since=NEW)
    run: Run | None = table(Run, "What starts a new version.", since=NEW)
    post_deploy_runbooks: tuple[str, ...] = texts(
        "Runbooks that run after a deploy.", '["smoke_test"]', since=NEW
    )
    ignore_changes_regex: str = text(
        "Changes to these files start nothing (RE2).", '"^docs/"', since=NEW, format="regex"
    )
    send_statuses_on_ignore: bool | None = flag(
        "Report a commit status for ignored changes, too.", default=None, since=NEW
    )
