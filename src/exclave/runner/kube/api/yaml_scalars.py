"""Scalars of YAML as Go reads them, which is how Kubernetes and Helm do.

PyYAML follows other rules: `y` is a text for it and a boolean for Go, `12:30` is 750, dates are
dates, `1e3` is a text. A manifest must not change its meaning between a plan and the cluster.
"""

import base64
import binascii
import math
import re
from typing import Final

from exclave.base.json_values import Json

_TAG: Final = "tag:yaml.org,2002:"
_TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE: Final = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_NULL: Final = ("", "~", "null", "Null", "NULL")
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(_NULL, None),
}
_NOT_JSON: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMBER_START: Final = frozenset("+-.0123456789")
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)"
    r"|(?P<dec>0|[1-9][0-9]*))"
)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SIGNED_BINARY: Final = re.compile(r"0b([-+][01]{1,62})")
"""Go also takes a sign after the prefix, of binary numbers alone."""
_LOOSE_UNDERSCORE: Final = re.compile(r"(?<![0-9])_|_(?![0-9])")
_BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}
_LONGEST_NUMBER: Final = 400
"""Characters of the longest text that is tried as a number; Go's largest has 309 digits."""
_PLAIN_FLOAT: Final = 1e21
"""Go writes smaller numbers without an exponent, so that 1e3 reaches an API server as 1000."""


def resolve_scalar(text: str, *, tag: str | None, is_plain: bool) -> Json:
    """Return the value of a scalar; `ValueError` if JSON has no such value or the tag is wrong."""
    if tag is None:
        return resolve_plain(text) if is_plain else text
    if not tag.startswith(_TAG):
        return text
    name = tag.removeprefix(_TAG)
    if name == "binary":
        return _decode_binary(text)
    if name not in _TYPES:
        return text
    value = resolve_plain(text)
    if type(value) not in _TYPES[name]:
        message = f"`{text[:40]}` is not of the type !!{name}"
        raise ValueError(message)
    return value


def resolve_plain(text: str) -> bool | float | str | None:
    """Return the value of a scalar without quotes and tag."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START or len(text) > _LONGEST_NUMBER:
        return text
    if _NOT_JSON.fullmatch(text):
        message = f"`{text}` is a number that JSON cannot express: quote it if it is a text"
        raise ValueError(message)
    # Go reads what begins with a dot by another function, which wants digits around underscores.
    if text.startswith(".") and _LOOSE_UNDERSCORE.search(text):
        return text
    plain = text.replace("_", "")
    number = _read_integer(plain)
    return _read_float(plain, text) if number is None else number


def name_key(key: Json) -> str:
    """Return the text of a mapping's key, as JSON needs it; `ValueError` if it cannot be one."""
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int():
            return str(key)
        case float():
            return repr(key)
        case _:
            message = "a key has to be a text, a number or a boolean"
            raise ValueError(message)


def _read_integer(plain: str) -> int | None:
    signed = _SIGNED_BINARY.fullmatch(plain)
    if signed is not None:
        return int(signed[1], 2)
    match = _INTEGER.fullmatch(plain)
    if match is None:
        return None
    base, digits = next(
        (name, text) for name, text in match.groupdict().items() if name != "sign" and text
    )
    value = int(match["sign"] + digits, _BASES[base])
    fits = -(1 << 63) <= value < (1 << 63) if match["sign"] else value < (1 << 64)
    return value if fits else None


def _read_float(plain: str, text: str) -> float | str:
    if _FLOAT.fullmatch(plain) is None:
        return text
    value = float(plain)
    if math.isinf(value):
        return text
    return int(value) if value.is_integer() and abs(value) < _PLAIN_FLOAT else value


def _decode_binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        message = "a !!binary value has to be base64 of UTF-8 text"
        raise ValueError(message) from error
