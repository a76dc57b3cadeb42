"""Starts and manages the runner of one install on this machine.

Read it before you run it: it needs Python 3.11 or newer and nothing else, works in one folder,
opens no port, and removes everything with --uninstall.

  (no option)   get the runner program, enrol it once, start it in the background
  --status      show its status
  --stop        stop it gracefully; --start starts it again
  --disable     kill switch: running work is stopped within two minutes, no new work is accepted
  --enable      accept work again
  --uninstall   stop it, close its identity at the vendor, remove its folder
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import ssl
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

# The parameters of this Stack. `enrolment` works once, for a short time.
STACK: dict[str, Any] = {}
# The runner program that the control plane serves; installed only if the hash matches.
PACKAGE: dict[str, str] = {}

VERBS = ("status", "stop", "start", "disable", "enable", "uninstall")
LOCK = "exclave/runner/runner.lock"
DOCUMENTS = ("stack.json", "stack.new.json")
MOST_BYTES = 64 << 20
OLDEST = (3, 11)
PROBE = "import exclave, exclave.main.commands.stack; print(exclave.__version__)"


def main() -> int:
    """Run the command line; return the exit code."""
    if sys.version_info[:2] < OLDEST or os.name != "posix":
        return fail("this needs Python 3.11 or newer on Linux or macOS")
    args = read_arguments()
    folder = Path(args.folder).expanduser().resolve()
    verb = next((name for name in VERBS if getattr(args, name)), None)
    if verb is not None:
        return forward_verb(folder, verb, args)
    try:
        prepare_folder(folder)
        # Written first: if the rest fails, the next run knows the folder by it.
        write_private(folder / "stack.new.json", json.dumps(STACK).encode())
        python = find_program(folder)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        return fail(f"the runner program could not be set up: {error}")
    words = [python, "-I", "-m", "exclave", "stack", "up", "--folder", str(folder)]
    words += [f"--{name}" for name in ("foreground", "systemd", "json") if getattr(args, name)]
    for pair in args.input:
        words += ["--input", pair]
    for pair in args.secret_file:
        words += ["--secret-file", pair]
    for kubeconfig in args.kubeconfig:
        words += ["--kubeconfig", kubeconfig]
    words += ["--registry", args.registry] if args.registry else []
    if args.foreground:
        os.execv(python, words)  # noqa: S606 - the runner takes the place of this script
    return subprocess.call(words, stdin=subprocess.DEVNULL)  # noqa: S603 - words, no shell


def read_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="stack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = f"~/.exclave/stacks/{STACK['terms']['install_id']}"
    parser.add_argument("--folder", default=default, help="folder of the Stack (%(default)s)")
    verbs = parser.add_mutually_exclusive_group()
    for verb in VERBS:
        verbs.add_argument(f"--{verb}", action="store_true")
    parser.add_argument(
        "--foreground",
        action="store_true",
        help="run in the foreground (for systemd and other init systems)",
    )
    parser.add_argument("--systemd", action="store_true", help="print a unit file, start nothing")
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=VALUE", help="set an input"
    )
    parser.add_argument(
        "--secret-file",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="read a secret from a file",
    )
    parser.add_argument(
        "--kubeconfig",
        action="append",
        default=[],
        metavar="[NAME=]FILE[:CONTEXT]",
        help="let jobs use a cluster; only the path is stored",
    )
    parser.add_argument(
        "--registry",
        default="",
        metavar="URL[/FOLDER]",
        help="copy images of the app into this registry",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def forward_verb(folder: Path, verb: str, args: argparse.Namespace) -> int:
    """Run a verb with the program in the folder; return its exit code."""
    launcher = folder / "stack"
    if not launcher.exists():
        return fail(f"there is no Stack in {folder}; name its folder with --folder")
    words = [str(launcher), verb]
    # Standard input may be this script, so there is no prompt: --uninstall is the confirmation.
    words += ["--yes"] if verb == "uninstall" else []
    words += ["--json"] if args.json else []
    return subprocess.call(words, stdin=subprocess.DEVNULL)  # noqa: S603 - words, no shell


def prepare_folder(folder: Path) -> None:
    """Create the folder; accept only an empty one or a Stack's: --uninstall removes all of it."""
    if not folder.exists():
        folder.mkdir(mode=0o700, parents=True)
        return
    why = ""
    if not folder.is_dir():
        why = "it is not a folder"
    elif folder in {Path("/"), Path.home().resolve()}:
        why = "it holds more than a Stack"
    elif folder.stat().st_uid != os.geteuid():
        why = "it belongs to another user"
    elif any(folder.iterdir()) and not any((folder / name).is_file() for name in DOCUMENTS):
        why = "it has files in it that are not a Stack's"
    if why:
        raise ValueError(f"{folder} is not used: {why}; name a new or empty folder with --folder")
    folder.chmod(0o700)


def find_program(folder: Path) -> str:
    """Return the path of a Python with the vendor's version of the runner program installed."""
    if has_program(sys.executable):
        return sys.executable
    venv = folder / "venv"
    python, mark = str(venv / "bin" / "python"), venv / "package.sha256"
    if mark.exists() and mark.read_text() == PACKAGE["sha256"] and has_program(python):
        return python
    say(f"Getting the runner program {STACK['version']} …")
    wheel, lock = folder / PACKAGE["file"], folder / "runner.lock"
    try:
        url = f"{STACK['runner_url'].rstrip('/')}/v1/stacks/package/{PACKAGE['file']}"
        write_private(wheel, download(url))
        with zipfile.ZipFile(wheel) as archive:
            write_private(lock, archive.read(LOCK))
        run([sys.executable, "-I", "-m", "venv", "--clear", str(venv)])
        pip = [python, "-I", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        run([*pip, "--no-input", "--require-hashes", "-r", str(lock)])
        run([*pip, "--no-input", "--no-deps", "--no-index", str(wheel)])
    finally:
        wheel.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)
    if not has_program(python):
        raise ValueError("it is installed and does not start")
    write_private(mark, PACKAGE["sha256"].encode())
    return python


def has_program(python: str) -> bool:
    """Return whether this Python has the vendor's version of the runner program."""
    probe = subprocess.run(  # noqa: S603 - words, no shell
        [python, "-I", "-c", PROBE],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return probe.returncode == 0 and probe.stdout.decode().strip() == STACK["version"]


def download(url: str) -> bytes:
    """Download the program; raise ValueError unless its hash is the one in this script."""
    handlers: list[urllib.request.BaseHandler] = []
    if os.environ.get("EXCLAVE_PROXY"):
        proxy = os.environ["EXCLAVE_PROXY"]
        handlers.append(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
    if os.environ.get("EXCLAVE_CA_BUNDLE"):
        tls = ssl.create_default_context()
        tls.load_verify_locations(cafile=os.environ["EXCLAVE_CA_BUNDLE"])
        handlers.append(urllib.request.HTTPSHandler(context=tls))
    with urllib.request.build_opener(*handlers).open(url, timeout=60) as reply:
        data: bytes = reply.read(MOST_BYTES + 1)
    if hashlib.sha256(data).hexdigest() != PACKAGE["sha256"]:
        raise ValueError(
            "the program served now is not the one that this script was made for;"
            " ask the vendor for a new script"
        )
    return data


def run(words: list[str]) -> None:
    """Run a command; raise CalledProcessError if it fails."""
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)  # noqa: S603 - words, no shell


def write_private(file: Path, data: bytes) -> None:
    """Write a file atomically, readable by this user only."""
    partial = file.with_name(f"{file.name}.part")
    partial.unlink(missing_ok=True)
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(data)
    partial.replace(file)


def say(text: str) -> None:
    """Print a message on stderr, with control characters escaped."""
    text = "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - a script talks


def fail(text: str) -> int:
    """Print an error; return the exit code."""
    say(f"error: {text}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
