"""Fetches one commit: a branch or tag is resolved once, then only the commit is used."""

import posixpath
import re
from dataclasses import dataclass, field
from pathlib import Path

from exclave.client.reach import Reach, Resolve, resolve_host
from exclave.runner.commands import git
from exclave.runner.commands.git import Argv
from exclave.runner.git.credentials import forget, hand_over
from exclave.runner.git.failures import explain_git
from exclave.runner.git.private_networks import check_literal, choose_ip
from exclave.runner.git.urls import Address, Rewrite, resolve_address
from exclave.runner.jobs.context import JobContext
from exclave.runner.jobs.environment import ChildSettings, build_env
from exclave.runner.jobs.shell import to_exit_status
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.runner.secrets.source_credentials import SourceCredentials, list_secrets
from exclave.wire.jobs import Reason
from exclave.wire.specs import GitSource

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"(?!.*(\.\.|@\{|//))[A-Za-z0-9_][A-Za-z0-9_./@+#=,%!-]*(?<![./])")
_SUBMODULE = "160000 "
_MOST_PRINTED = 4 << 20
_PAUSES_S = (1.0, 4.0)
"""How long to wait before each retry after a network failure."""


@dataclass(frozen=True, slots=True)
class GitSettings:
    """What this runner may fetch, and how."""

    rewrites: tuple[Rewrite, ...] = ()
    protocols: frozenset[str] = frozenset({"https", "ssh"})
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder of a commit, written to disk."""

    root: Path
    commit: str
    url: str


@dataclass(slots=True)
class _Remote:
    """A repository, with its pinned address and credentials, for one build."""

    address: Address
    env: dict[str, str]
    pinned: str | None = None
    repository: Path = field(default_factory=Path)


class GitFetcher:
    """Fetches sources for builds."""

    def __init__(
        self,
        settings: GitSettings,
        children: ChildSettings,
        credentials: SourceCredentials,
        *,
        resolve: Resolve = resolve_host,
    ) -> None:
        self._settings = settings
        self._children = children
        self._credentials = credentials
        self._reach = Reach(allow_private=settings.allow_private, resolve=resolve)

    async def fetch(self, context: JobContext, source: GitSource) -> Checkout:
        """Write the source folder to the workspace; raise `WorkFailed` with a hint."""
        _check_ref(source)
        try:
            remote = await self._prepare(context, source)
            await _run(context, remote, git.init(remote.repository), cwd=context.workspace.work)
            commit = source.commit or await self._resolve_ref(context, remote, source.ref)
            context.log.system(f"fetching commit {commit} of {remote.address.text}")
            fetch = git.fetch(remote.address.text, commit, pinned=remote.pinned)
            await _run_patiently(context, remote, fetch)
            await _check_commit(context, remote, commit)
        finally:
            forget(context.workspace)
        await self._check_out(context, remote, commit, source.directory)
        return Checkout(remote.repository, commit, remote.address.text)

    async def _prepare(self, context: JobContext, source: GitSource) -> _Remote:
        rules = self._settings
        address = resolve_address(source.url, rules.rewrites, rules.protocols)
        ip = await self._choose_ip(address)
        credential = self._credentials.find(address.text) if source.connected else None
        if credential is not None:
            context.log.hide(list_secrets(credential))
        env = build_env(self._children, context.workspace)
        env |= git.build_git_env(rules.protocols)
        env |= {"GIT_CEILING_DIRECTORIES": str(context.workspace.folder)}
        env |= hand_over(credential, address, ip, context.workspace)
        pinned = f"{address.host}:{address.port}:{ip}" if ip is not None else None
        return _Remote(address, env, pinned, context.workspace.work / "source")

    async def _choose_ip(self, address: Address) -> str | None:
        """Return the IP address to pin; None where the operator or a proxy decides."""
        if address.trusted or address.protocol == "file":
            return None
        if self._children.proxy and address.protocol != "ssh":
            check_literal(address.host, allow_private=self._settings.allow_private)
            return None
        return await choose_ip(address, self._reach)

    async def _resolve_ref(self, context: JobContext, remote: _Remote, ref: str) -> str:
        if _COMMIT.fullmatch(ref):
            return ref
        argv = git.list_refs(remote.address.text, ref, pinned=remote.pinned)
        listed = _parse_refs(await _run_patiently(context, remote, argv))
        names = (f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}", ref)
        matching = [(name, listed[name]) for name in names if name in listed]
        if not matching:
            hint = "; a commit is written in full, with 40 digits" if _is_short(ref) else ""
            message = f"`{remote.address.text}` has no branch or tag `{ref}`{hint}"
            raise WorkFailed(Reason.SOURCE_INVALID, message)
        name, commit = matching[0]
        context.log.system(f"{name} is commit {commit}")
        if name.startswith("refs/heads/") and len(matching) > 1:
            context.log.system(f"there is a tag `{ref}` too: the branch is taken")
        return commit

    async def _check_out(
        self, context: JobContext, remote: _Remote, commit: str, directory: str
    ) -> None:
        folder = posixpath.normpath(directory or ".")
        if folder != ".":
            await _check_folder(context, remote, commit, folder)
        await _run(context, remote, git.check_out(commit, folder))
        listed = await _run(context, remote, git.list_files())
        for entry in listed.split("\0"):
            if entry.startswith(_SUBMODULE):
                path = entry.partition("\t")[2]
                context.log.system(f"warning: the submodule `{path}` is left out: none are fetched")


async def _run_patiently(context: JobContext, remote: _Remote, argv: Argv) -> str:
    """Run git; retry after a network failure, because fetching is idempotent."""
    for pause_s in _PAUSES_S:
        try:
            return await _run(context, remote, argv)
        except WorkFailed as failed:
            if failed.reason is not Reason.NETWORK:
                raise
            context.log.system(f"{failed.message}; trying again in {pause_s:g} s")
        await context.pause(pause_s)
    return await _run(context, remote, argv)


async def _run(context: JobContext, remote: _Remote, argv: Argv, *, cwd: Path | None = None) -> str:
    """Run git and return what it printed."""
    name = _name(argv)
    command = Command(argv, remote.env, cwd or remote.repository)
    printed = await context.capture(command, name=f"`git {name}`", most_bytes=_MOST_PRINTED)
    if printed.code != 0:
        raise explain_git(name, to_exit_status(printed.code), printed.stderr)
    if printed.truncated:
        raise WorkFailed(Reason.SOURCE_INVALID, f"git {name} printed too much")
    return printed.stdout


async def _check_commit(context: JobContext, remote: _Remote, commit: str) -> None:
    kind = (await _run(context, remote, git.describe(commit))).strip()
    if kind != "commit":
        message = f"`{commit}` is a {kind} and not a commit: name the commit itself"
        raise WorkFailed(Reason.SOURCE_INVALID, message)


async def _check_folder(context: JobContext, remote: _Remote, commit: str, folder: str) -> None:
    listing = git.list_folders(commit, posixpath.dirname(folder))
    folders = [name for name in (await _run(context, remote, listing)).split("\0") if name]
    if folder not in folders:
        there = f"; there are {', '.join(f'`{name}`' for name in folders[:8])}" if folders else ""
        message = f"there is no folder `{folder}` in commit {commit}{there}"
        raise WorkFailed(Reason.SOURCE_INVALID, message)


def _check_ref(source: GitSource) -> None:
    ref = source.ref
    if ref != "HEAD" and (not _REF.fullmatch(ref) or ref.endswith(".lock")):
        message = f"`{ref[:100]}` is not a valid name of a branch, tag or commit"
        raise WorkFailed(Reason.SOURCE_INVALID, message)


def _parse_refs(text: str) -> dict[str, str]:
    refs = {}
    for line in text.splitlines():
        commit, tab, name = line.partition("\t")
        if tab and _COMMIT.fullmatch(commit):
            refs[name] = commit
    return refs


def _is_short(ref: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{7,39}", ref) is not None


def _name(argv: Argv) -> str:
    """Return the subcommand: the first word after the options."""
    words = iter(argv[1:])
    for word in words:
        if word != "-c":
            return word
        next(words, None)
    return ""
