"""sprig: semantic versions."""

from exclave.template import semver
from exclave.template.functions.signature import Env, Param, Registry
from exclave.template.values import Uint64, Version

VERSIONS = Registry()
TEXT = Param.TEXT


@VERSIONS.add("semver", takes=(TEXT,))
def make_version(text: str) -> Version:
    """Return a version with the fields `Major`, `Minor`, `Patch`, `Prerelease` and `Metadata`."""
    parsed = semver.parse_version(text)
    fields = {
        "Major": Uint64(parsed.major),
        "Minor": Uint64(parsed.minor),
        "Patch": Uint64(parsed.patch),
        "Prerelease": parsed.label,
        "Metadata": parsed.metadata,
        "Original": text,
        "String": parsed.text(),
    }
    return Version(fields, parsed.text(), text)


@VERSIONS.add_with_env("semverCompare", takes=(TEXT, TEXT))
def compare_version(env: Env, constraint: str, version: str) -> bool:
    """Return whether a version satisfies a constraint."""
    env.budget.spend(len(constraint))
    return semver.check_constraint(constraint, version)
