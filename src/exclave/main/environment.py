"""Settings from the environment: `EXCLAVE_…` variables are read here and nowhere else."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TypeVar

from pydantic import ValidationError

from exclave.base.errors import InvalidInput
from exclave.domain.quotas import Quotas
from exclave.domain.timings import BOUNDS, Timings, check_timings
from exclave.main.settings import PREFIX, RunnerSettings, ServerSettings, Settings

QUOTA = "QUOTA_"
COMMAND_LINE = frozenset({"URL", "TOKEN", "CONFIG", "DEBUG"})
"""Variables of the command line itself."""
_GROUPS = frozenset({"timings", "quotas"})
"""Fields that stand for a group of settings."""
_LONGEST_NUMBER = 18

S = TypeVar("S", bound=Settings)
N = TypeVar("N", int, float)


def read_settings(kind: type[S], env: Mapping[str, str], **given: object) -> S:
    """Return the settings from the environment; command-line options take precedence."""
    values: dict[str, object] = {}
    for name in kind.model_fields:
        if name not in _GROUPS and env.get(PREFIX + name.upper()):
            values[name] = env[PREFIX + name.upper()]
    values |= {name: value for name, value in given.items() if value is not None}
    if "timings" in kind.model_fields:
        values["timings"] = read_timings(env)
    if "quotas" in kind.model_fields:
        values["quotas"] = read_quotas(env)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise InvalidInput(_explain(error)) from error


def read_timings(env: Mapping[str, str]) -> Timings:
    """Return the durations of the protocol, checked to be safe in combination."""
    names = [field.name for field in fields(Timings) if field.name != "max_attempts"]
    seconds = {name: _read_number(env, name, float) for name in names if _is_set(env, name)}
    attempts = Timings().max_attempts
    if _is_set(env, "max_attempts"):
        attempts = _read_number(env, "max_attempts", int)
    return check_timings(Timings(max_attempts=attempts, **seconds))


def _is_set(env: Mapping[str, str], name: str) -> bool:
    return bool(env.get(PREFIX + name.upper()))


def _read_number(env: Mapping[str, str], name: str, kind: Callable[[str], N]) -> N:
    variable = PREFIX + name.upper()
    try:
        return kind(env[variable])
    except ValueError as error:
        raise InvalidInput(f"{variable}: `{env[variable]}` is not a number") from error


def read_quotas(env: Mapping[str, str]) -> Quotas:
    """Return the quotas of an org; 0 means no limit."""
    values: dict[str, int] = {}
    for field in fields(Quotas):
        name = f"{PREFIX}{QUOTA}{field.name.upper()}"
        text = env.get(name)
        if text:
            if not text.isdecimal() or len(text) > _LONGEST_NUMBER:
                raise InvalidInput(
                    f"{name}: `{text}` is not a number of bytes or items",
                    hint="Write it as a whole number; 0 means no limit.",
                )
            values[field.name] = int(text)
    return Quotas(**values)


def find_unknown(env: Mapping[str, str]) -> list[str]:
    """Return unknown `EXCLAVE_…` variables, each with the most similar known one."""
    known = {PREFIX + name.upper() for name in [*_list_names(), *BOUNDS]}
    known |= {PREFIX + name for name in COMMAND_LINE}
    known |= {f"{PREFIX}{QUOTA}{field.name.upper()}" for field in fields(Quotas)}
    unknown = []
    for name in sorted(env):
        if name.startswith(PREFIX) and name not in known and not _is_test_only(name):
            near = difflib.get_close_matches(name, known, 1)
            unknown.append(
                f"{name} is not a setting" + (f"; did you mean {near[0]}?" if near else "")
            )
    return unknown


def _is_test_only(name: str) -> bool:
    return re.match(r"EXCLAVE_TEST_", name) is not None


def _list_names() -> Iterable[str]:
    for kind in (ServerSettings, RunnerSettings):
        yield from kind.model_fields


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    name = PREFIX + "_".join(str(part) for part in first["loc"]).upper()
    return f"{name}: {first['msg']}"
