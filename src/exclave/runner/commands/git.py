"""The git commands of a build as data, and an environment without any git configuration."""

from collections.abc import Iterable, Mapping
from pathlib import Path

Argv = tuple[str, ...]

_CONFIG: Mapping[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.autocrlf": "false",
    "core.symlinks": "true",
    "core.attributesFile": "/dev/null",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "60",
    "protocol.version": "2",
    "advice.detachedHead": "false",
}
_ENV: Mapping[str, str] = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_SSH_VARIANT": "ssh",
    "SSH_ASKPASS": "false",
    "LC_ALL": "C",
}


def init(repository: Path) -> Argv:
    """Create an empty repository, without templates: those hold hooks."""
    return ("git", *_options(), "init", "--quiet", "--template=", str(repository))


def list_refs(url: str, ref: str, *, pinned: str | None = None) -> Argv:
    """List the refs of a name: branch, tag, and the commit that an annotated tag wraps."""
    names = (
        (ref,)
        if ref == "HEAD" or ref.startswith("refs/")
        else (f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/tags/{ref}^{{}}")
    )
    return ("git", *_options(pinned), "ls-remote", "--quiet", "--", url, *names)


def fetch(url: str, commit: str, *, pinned: str | None = None) -> Argv:
    """Fetch one commit without its history."""
    return (
        "git",
        *_options(pinned),
        "fetch",
        "--depth=1",
        "--no-tags",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
        "--",
        url,
        commit,
    )


def list_folders(commit: str, parent: str) -> Argv:
    """List the folders in a folder of a commit; nothing if there is no such folder."""
    inside = (f"{parent}/",) if parent else ()
    return ("git", *_options(), "ls-tree", "-d", "-z", "--name-only", commit, "--", *inside)


def check_out(commit: str, directory: str) -> Argv:
    """Write one folder of a commit to the work tree."""
    return ("git", *_options(), "checkout", "--quiet", "--force", commit, "--", directory)


def list_files() -> Argv:
    """List what was checked out, with modes: a submodule has its own."""
    return ("git", *_options(), "ls-files", "--stage", "-z")


def describe(commit: str) -> Argv:
    """Print the type of the fetched object."""
    return ("git", *_options(), "cat-file", "-t", commit)


def build_git_env(protocols: Iterable[str]) -> dict[str, str]:
    """Return the variables that every git command gets in addition."""
    return {**_ENV, "GIT_ALLOW_PROTOCOL": ":".join(sorted(protocols))}


def _options(pinned: str | None = None) -> Argv:
    """Return the configuration options; `pinned` is `host:port:address` for curl's resolver."""
    options = [part for name, value in _CONFIG.items() for part in ("-c", f"{name}={value}")]
    if pinned is not None:
        options += ["-c", f"http.curloptResolve={pinned}"]
    return tuple(options)
