"""sprig: JSON, base 64, base 32, and checksums."""

import base64
import hashlib
import json
import zlib

from exclave.template import gojson
from exclave.template.functions.signature import Env, Param, Registry
from exclave.template.problems import Fault
from exclave.template.text import to_bytes, to_text
from exclave.template.values import Value

ENCODING = Registry()
ANY, TEXT = Param.ANY, Param.TEXT

_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BASE32 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
_PADS32 = {2: 6, 4: 4, 5: 3, 7: 1}
"""How many `=` follow so many characters in the last group of base 32."""


@ENCODING.add_with_env("toJson", "mustToJson", takes=(ANY,))
def to_json(env: Env, value: Value) -> str:
    """Return JSON, with `<`, `>` and `&` escaped as Go does."""
    return gojson.encode(value, env.budget, html=True)


@ENCODING.add_with_env("toRawJson", "mustToRawJson", takes=(ANY,))
def to_raw_json(env: Env, value: Value) -> str:
    """Return JSON without HTML escapes."""
    return gojson.encode(value, env.budget, html=False)


@ENCODING.add_with_env("toPrettyJson", "mustToPrettyJson", takes=(ANY,))
def to_pretty_json(env: Env, value: Value) -> str:
    """Return JSON over several lines, indented by 2."""
    return gojson.encode(value, env.budget, html=True, indent="  ")


@ENCODING.add_with_env("fromJson", takes=(TEXT,))
def from_json(env: Env, text: str) -> Value:
    """Return parsed JSON, or nil if it is invalid."""
    try:
        return gojson.decode(text, env.budget)
    except json.JSONDecodeError:
        return None


@ENCODING.add_with_env("mustFromJson", takes=(TEXT,))
def must_from_json(env: Env, text: str) -> Value:
    """Return parsed JSON; invalid JSON is a problem."""
    try:
        return gojson.decode(text, env.budget)
    except json.JSONDecodeError as wrong:
        raise Fault(f"this is not JSON: {wrong.msg} at character {wrong.pos + 1}") from None


@ENCODING.add("b64enc", takes=(TEXT,))
def encode_base64(text: str) -> str:
    """Return the text in base 64."""
    return base64.b64encode(to_bytes(text)).decode()


@ENCODING.add("b64dec", takes=(TEXT,))
def decode_base64(text: str) -> str:
    """Return decoded base 64, or an error message as the text, as in sprig."""
    data, wrong = _check_groups(to_bytes(text), _BASE64, 4, {2: 2, 3: 1})
    if wrong is not None:
        return f"illegal base64 data at input byte {wrong}"
    return to_text(base64.b64decode(data))


@ENCODING.add("b32enc", takes=(TEXT,))
def encode_base32(text: str) -> str:
    """Return the text in base 32."""
    return base64.b32encode(to_bytes(text)).decode()


@ENCODING.add("b32dec", takes=(TEXT,))
def decode_base32(text: str) -> str:
    """Return decoded base 32, or an error message as the text, as in sprig."""
    data, wrong = _check_groups(to_bytes(text), _BASE32, 8, _PADS32)
    if wrong is not None:
        return f"illegal base32 data at input byte {wrong}"
    return to_text(base64.b32decode(data))


def _check_groups(
    data: bytes, letters: frozenset[int], group: int, pads: dict[int, int]
) -> tuple[bytes, int | None]:
    """Return the data without line ends, and the offset of the first invalid byte, if any."""
    kept = bytearray()
    padding = 0
    for offset, byte in enumerate(data):
        if byte in b"\r\n":
            continue
        if byte == ord("="):
            padding += 1
            wanted = pads.get((len(kept) - padding + 1) % group)
            if wanted is None or padding > wanted:
                return b"", offset
        elif byte not in letters or padding:
            return b"", offset
        kept.append(byte)
    if len(kept) % group:
        return b"", len(data) if padding else len(data) - len(kept) % group
    return bytes(kept), None


@ENCODING.add("sha1sum", takes=(TEXT,))
def sha1(text: str) -> str:
    """Return the SHA-1 checksum in hexadecimal."""
    return hashlib.sha1(to_bytes(text), usedforsecurity=False).hexdigest()


@ENCODING.add("sha256sum", takes=(TEXT,))
def sha256(text: str) -> str:
    """Return the SHA-256 checksum in hexadecimal."""
    return hashlib.sha256(to_bytes(text)).hexdigest()


@ENCODING.add("sha512sum", takes=(TEXT,))
def sha512(text: str) -> str:
    """Return the SHA-512 checksum in hexadecimal."""
    return hashlib.sha512(to_bytes(text)).hexdigest()


@ENCODING.add("adler32sum", takes=(TEXT,))
def adler32(text: str) -> str:
    """Return the Adler-32 checksum as a decimal number."""
    return str(zlib.adler32(to_bytes(text)))
