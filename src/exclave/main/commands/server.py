"""`exclave server`: run the control plane, set it up, back it up."""

from dataclasses import asdict
from pathlib import Path

import click

from exclave.base.errors import Conflict
from exclave.cli.terminal import print_err
from exclave.control.after_restore import settle_restore
from exclave.control.four_eyes import force_four_eyes
from exclave.control.orgs.accounts import create_org, set_instance_admin
from exclave.domain.identity import TokenId
from exclave.main.commands.common import (
    answer,
    begin_logs,
    environment,
    json_option,
    run_async,
)
from exclave.main.composition import build_deps
from exclave.main.data_folder import prepare_data_folder, set_private_umask
from exclave.main.server import serve
from exclave.main.settings import ServerSettings, read_settings
from exclave.storage import backup as backups
from exclave.storage.migrate import upgrade

data_option = click.option("--data", type=click.Path(path_type=Path), help="Data folder.")


@click.group(invoke_without_command=True)
@data_option
@click.option("--database", help="Database URL; default: SQLite in the data folder.")
@click.option("--control-port", type=int, help="Port of the Control API.")
@click.option("--runner-port", type=int, help="Port of the Runner API.")
@click.pass_context
def group(
    context: click.Context,
    data: Path | None,
    database: str | None,
    control_port: int | None,
    runner_port: int | None,
) -> None:
    """Run the control plane; the settings of the reference page apply."""
    settings = read_settings(
        ServerSettings,
        environment(),
        data=data,
        database=database,
        control_port=control_port,
        runner_port=runner_port,
    )
    context.obj = settings
    if context.invoked_subcommand is None:
        set_private_umask()
        begin_logs(settings.log_level)
        run_async(serve(settings))


@group.command()
@click.argument("org")
@click.option("--admin", default="admin", show_default=True, help="Name of the first account.")
@click.option("--instance-admin", is_flag=True, help="That admin may create orgs too.")
@json_option
@click.pass_obj
def init(
    settings: ServerSettings, org: str, admin: str, *, instance_admin: bool, json_mode: bool
) -> None:
    """Create an org with its first admin, and print that admin's token.

    The admin of the first org is an instance admin: they may create orgs.
    """
    deps = build_deps(settings)
    try:
        made = deps.db.write_now(
            lambda tx: create_org(tx, deps, org, admin, instance_admin=instance_admin)
        )
    finally:
        deps.db.close()
    if not json_mode:
        print_err(f"Created org `{org}`. The token of `{admin}`, shown once:")
    answer(made.model_dump(mode="json"), made.token, json_mode=json_mode)


@group.command("instance-admin")
@click.argument("token_id")
@click.option("--take", is_flag=True, help="Take the right instead of giving it.")
@json_option
@click.pass_obj
def instance_admin(settings: ServerSettings, token_id: str, *, take: bool, json_mode: bool) -> None:
    """Let an API token create orgs, or not any more."""
    deps = build_deps(settings)
    try:
        deps.db.write_now(lambda tx: set_instance_admin(tx, deps, TokenId(token_id), on=not take))
    finally:
        deps.db.close()
    may = "may not create orgs any more" if take else "may create orgs now"
    answer(
        {"token_id": token_id, "instance_admin": not take},
        f"{token_id} {may}.",
        json_mode=json_mode,
    )


@group.command("four-eyes")
@click.argument("org")
@click.argument("state", type=click.Choice(["on", "off"]))
@json_option
@click.pass_obj
def switch_four_eyes(settings: ServerSettings, org: str, state: str, *, json_mode: bool) -> None:
    """Switch four eyes of an org whose admins cannot agree any more; it is in their audit."""
    deps = build_deps(settings)
    try:
        deps.db.write_now(lambda tx: force_four_eyes(tx, deps, org, on=state == "on"))
    finally:
        deps.db.close()
    answer(
        {"org": org, "on": state == "on"}, f"Four eyes are {state} in `{org}`.", json_mode=json_mode
    )


@group.command()
@json_option
@click.pass_obj
def migrate(settings: ServerSettings, *, json_mode: bool) -> None:
    """Bring the database to the schema of this version; `exclave server` does it by itself."""
    prepare_data_folder(settings.data)
    upgrade(settings.database_url)
    answer({"ok": True}, "The schema is up to date.", json_mode=json_mode)


@group.command("rotate-key")
@json_option
@click.pass_obj
def rotate_key(settings: ServerSettings, *, json_mode: bool) -> None:
    """Sign with a new key from now on; runners follow by the old key's signature over it."""
    deps = build_deps(settings)
    try:
        kid = deps.db.write_now(deps.keys.rotate)
    finally:
        deps.db.close()
    answer({"kid": kid}, kid, json_mode=json_mode)


@group.command()
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def backup(settings: ServerSettings, folder: Path, *, json_mode: bool) -> None:
    """Copy database, blobs and seal key into a new folder; the server may run meanwhile."""
    _require_embedded(settings)
    files = backups.write_backup(settings.data, folder)
    text = f"Wrote {files} files to {folder}. It holds the seal key: keep it as safe as the data."
    answer({"folder": str(folder), "files": files}, text, json_mode=json_mode)


@group.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@json_option
@click.pass_obj
def restore(settings: ServerSettings, folder: Path, *, json_mode: bool) -> None:
    """Make a new data folder from a backup, safe against everything that happened since."""
    _require_embedded(settings)
    files = backups.read_backup(folder, settings.data)
    deps = build_deps(settings)
    try:
        done = deps.db.write_now(lambda tx: settle_restore(tx, deps))
    finally:
        deps.db.close()
    text = (
        f"Restored {files} files to {settings.data}; epochs are of generation {done.generation},"
        f" {done.interrupted} running executions were given up,"
        f" {done.blocked_lanes} lanes wait for a look."
    )
    answer({"files": files, **asdict(done)}, text, json_mode=json_mode)


@group.command("settle-restore")
@json_option
@click.pass_obj
def settle(settings: ServerSettings, *, json_mode: bool) -> None:
    """Say that PostgreSQL was restored or failed over: raise epochs, give up what ran."""
    deps = build_deps(settings)
    try:
        done = deps.db.write_now(lambda tx: settle_restore(tx, deps))
    finally:
        deps.db.close()
    text = (
        f"Epochs are of generation {done.generation} now;"
        f" {done.interrupted} running executions were given up,"
        f" {done.blocked_lanes} lanes wait for a look."
    )
    answer(asdict(done), text, json_mode=json_mode)


def _require_embedded(settings: ServerSettings) -> None:
    if settings.database or settings.s3_bucket:
        raise Conflict(
            "this copies SQLite and files only",
            hint="Back up PostgreSQL and the bucket with their own tools; see the docs.",
        )
