"""`exclave server`: run the control plane, set it up, back it up."""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from exclave.base.errors import Conflict
from exclave.cli.terminal import print_err
from exclave.control.after_restore import settle_restore
from exclave.control.four_eyes import force_four_eyes
from exclave.control.orgs.accounts import create_org, set_instance_admin
from exclave.domain.identity import TokenId
from exclave.main.bundle import MACHINES, USUAL_PYTHON, Machine, download_wheels, write_bundle
from exclave.main.commands.process import (
    answer,
    begin_logs,
    environment,
    json_option,
    run_async,
)
from exclave.main.composition import build_deps
from exclave.main.data_folder import prepare_data_folder, set_private_umask
from exclave.main.environment import read_settings
from exclave.main.server import serve
from exclave.main.settings import ServerSettings
from exclave.storage import backup as backups
from exclave.storage.migrate import upgrade

data_option = click.option("--data", type=click.Path(path_type=Path), help="Data folder.")


@click.group(invoke_without_command=True)
@data_option
@click.option("--database", help="Database URL.  [default: SQLite in the data folder]")
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
    """Run the control plane. Its settings are environment variables (see the reference)."""
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
@click.option(
    "--admin", default="admin", show_default=True, help="Name of the first admin account."
)
@click.option("--instance-admin", is_flag=True, help="Allow this admin to create orgs.")
@json_option
@click.pass_obj
def init(
    settings: ServerSettings, org: str, admin: str, *, instance_admin: bool, json_mode: bool
) -> None:
    """Create an org with its first admin, and print the admin's token.

    The admin of the first org is an instance admin, who may create orgs.
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
@click.option("--take", is_flag=True, help="Remove the right instead of granting it.")
@json_option
@click.pass_obj
def instance_admin(settings: ServerSettings, token_id: str, *, take: bool, json_mode: bool) -> None:
    """Grant or remove the right of an API token to create orgs."""
    deps = build_deps(settings)
    try:
        deps.db.write_now(lambda tx: set_instance_admin(tx, deps, TokenId(token_id), on=not take))
    finally:
        deps.db.close()
    may = "can no longer create orgs" if take else "can create orgs now"
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
    """Turn four eyes of an org on or off if its admins cannot; recorded in its audit log."""
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
    """Migrate the database to the schema of this version; `exclave server` does it at its start."""
    prepare_data_folder(settings.data)
    upgrade(settings.database_url)
    answer({"ok": True}, "The schema is up to date.", json_mode=json_mode)


@group.command("rotate-key")
@json_option
@click.pass_obj
def rotate_key(settings: ServerSettings, *, json_mode: bool) -> None:
    """Switch to a new signing key; runners trust it because the old key signs it."""
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
    """Copy the database, blobs and seal key into a new folder; the server can keep running."""
    _require_embedded(settings)
    files = backups.write_backup(settings.data, folder)
    text = f"Wrote {files} files to {folder}. It holds the seal key: protect it like the data."
    answer({"folder": str(folder), "files": files}, text, json_mode=json_mode)


@group.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@json_option
@click.pass_obj
def restore(settings: ServerSettings, folder: Path, *, json_mode: bool) -> None:
    """Create a data folder from a backup; jobs that were running at its time are given up."""
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
        f" {done.blocked_lanes} lanes are blocked until you have checked them."
    )
    answer({"files": files, **asdict(done)}, text, json_mode=json_mode)


@group.command("settle-restore")
@json_option
@click.pass_obj
def settle(settings: ServerSettings, *, json_mode: bool) -> None:
    """Finish a restore or failover of PostgreSQL; jobs that were running are given up."""
    deps = build_deps(settings)
    try:
        done = deps.db.write_now(lambda tx: settle_restore(tx, deps))
    finally:
        deps.db.close()
    text = (
        f"Epochs are now of generation {done.generation};"
        f" {done.interrupted} running executions were given up,"
        f" {done.blocked_lanes} lanes are blocked until you have checked them."
    )
    answer(asdict(done), text, json_mode=json_mode)


@group.command()
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder of the archives."
)
@click.option(
    "--wheels",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with a subfolder of wheels per machine (`x86_64`, `aarch64`), instead of pip.",
)
@click.option(
    "--machine",
    "machines",
    type=click.Choice(MACHINES),
    multiple=True,
    help="Only for this kind of machine.",
)
@click.option(
    "--python", default=USUAL_PYTHON, show_default=True, help="Python of the machines, as `3.12`."
)
@json_option
def bundle(
    out: Path,
    wheels: Path | None,
    machines: tuple[Machine, ...],
    python: str,
    *,
    json_mode: bool,
) -> None:
    """Make the archives of the runner program that machines in clouds fetch.

    Name their folder in EXCLAVE_BUNDLES. The same version makes the same bytes.
    """
    made = []
    for machine in machines or MACHINES:
        with TemporaryDirectory(prefix="exclave-wheels-") as folder:
            source = Path(folder) if wheels is None else wheels / machine
            if wheels is None:
                print_err(f"Downloading the wheels for {machine} …")
                download_wheels(source, machine, python)
            made.append(write_bundle(out, machine, source, python))
    documents = [{**asdict(entry), "path": str(entry.path)} for entry in made]
    lines = [f"{entry.sha256}  {entry.path}" for entry in made]
    answer({"bundles": documents}, "\n".join(lines), json_mode=json_mode)


def _require_embedded(settings: ServerSettings) -> None:
    if settings.database or settings.s3_bucket:
        raise Conflict(
            "this command copies SQLite databases and local files only",
            hint="Back up PostgreSQL and the bucket with their own tools; see the docs.",
        )
