"""Checks of components that are built from a Dockerfile."""

import posixpath
import re

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.kinds.other_components import DockerBuild

_PLATFORM = re.compile(r"linux/[a-z0-9]+(/v[0-9]+)?")
_SECRET = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def check_docker_build(report: Report, place: Place, value: DockerBuild) -> None:
    """Check the paths, platforms and secrets of a build."""
    for key, path in (("dockerfile", value.dockerfile), ("context", value.context)):
        if posixpath.normpath(path or ".").startswith(("/", "..")):
            message = f"`{path}` is not inside of `directory`"
            hint = "Builds see nothing outside of it: name a `directory` that has both."
            report.error(Code.BAD_FORMAT, place.child(key), message, hint)
    for platform in value.platforms:
        if not _PLATFORM.fullmatch(platform):
            message = f"`{platform}` is not a platform of Linux"
            hint = "Write it like `linux/amd64` or `linux/arm/v7`."
            report.error(Code.BAD_FORMAT, place.child("platforms"), message, hint)
    _check_secrets(report, place.child("secrets"), value)


def _check_secrets(report: Report, place: Place, value: DockerBuild) -> None:
    arguments = {name.lower() for name in (*value.env_vars, *value.build_args)}
    for secret in value.secrets:
        if not _SECRET.fullmatch(secret):
            message = f"`{secret}` is not a name of a secret"
            hint = "Write it in lower case, with digits, `_` and `-`."
            report.error(Code.BAD_NAME, place, message, hint)
        if secret in arguments:
            message = f"`{secret}` is a secret and a build argument"
            hint = "Arguments can be read in the image: mount it with RUN --mount=type=secret."
            report.error(Code.CONFLICT, place, message, hint)
