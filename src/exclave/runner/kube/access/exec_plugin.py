"""Run the command of a kubeconfig that prints a token, as `kubectl` would."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from exclave.base.clock import Clock
from exclave.base.json_values import Json, JsonObject, object_or_empty, parse_object, text_or_empty
from exclave.base.secrets import Secret
from exclave.runner.kube.access.kubeconfig import ExecPlugin, KubeContext
from exclave.runner.kube.access.tokens import Issue, IssuedToken
from exclave.runner.kube.api.errors import AccessRefused

LIMIT_S: Final = 30.0
_MOST_BYTES: Final = 256 << 10
_EARLY_S: Final = 60.0
_SHOWN: Final = 500


def run_plugin(
    plugin: ExecPlugin, context: KubeContext, clock: Clock, path: str, *, limit_s: float = LIMIT_S
) -> Issue:
    """Return an issuer that runs the plugin as the runner's own user; it sees no secret of ours."""
    name = plugin.argv[0]
    env = {
        "PATH": path,
        "HOME": os.environ.get("HOME", "/"),
        "KUBERNETES_EXEC_INFO": json.dumps(_describe(plugin, context)),
        **dict(plugin.env),
    }

    async def issue() -> IssuedToken:
        try:
            async with asyncio.timeout(limit_s):
                printed = await _run(plugin.argv, env)
        except TimeoutError as error:
            message = f"`{name}` printed no token within {limit_s:g} s"
            raise AccessRefused(message) from error
        except (FileNotFoundError, PermissionError) as error:
            message = f"`{name}`, which the kubeconfig needs for a token, cannot be started"
            raise AccessRefused(message, hint=plugin.hint or None) from error
        return _read_credential(printed, name, clock)

    return issue


async def _run(argv: tuple[str, ...], env: Mapping[str, str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_MOST_BYTES,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        assert process.stderr is not None  # noqa: S101 - it is a pipe
        printed, errors = await asyncio.gather(_read(process.stdout), _read(process.stderr))
        code = await process.wait()
    finally:
        # A plugin may leave children that hold its pipes; they end with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if code != 0:
        shown = errors.decode(errors="replace").strip()[-_SHOWN:]
        raise AccessRefused(f"`{argv[0]}` ended with code {code}: {shown}")
    return printed


async def _read(stream: asyncio.StreamReader) -> bytes:
    """Return everything up to the limit; the rest is read and dropped, so that nothing blocks."""
    kept = bytearray()
    while chunk := await stream.read(1 << 16):
        kept += chunk[: _MOST_BYTES - len(kept)]
    return bytes(kept)


def _read_credential(printed: bytes, name: str, clock: Clock) -> IssuedToken:
    try:
        status = object_or_empty(parse_object(printed, "it").get("status"))
    except ValueError as error:
        raise AccessRefused(f"`{name}` printed no ExecCredential") from error
    token = text_or_empty(status.get("token"))
    if not token:
        message = f"`{name}` printed no token; client certificates of plugins are not supported"
        raise AccessRefused(message)
    expires = text_or_empty(status.get("expirationTimestamp"))
    if not expires:
        return IssuedToken(Secret(token), None)
    try:
        left_s = (datetime.fromisoformat(expires) - clock.now()).total_seconds()
    except (ValueError, TypeError) as error:
        raise AccessRefused(
            f"`{name}` printed `{expires}` as the time of expiry, which is not a time"
        ) from error
    return IssuedToken(Secret(token), max(left_s - _EARLY_S, 1.0))


def _describe(plugin: ExecPlugin, context: KubeContext) -> JsonObject:
    spec: dict[str, Json] = {"interactive": False}
    if plugin.wants_cluster:
        spec["cluster"] = {"server": context.server}
    return {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
