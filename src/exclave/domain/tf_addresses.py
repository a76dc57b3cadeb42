r"""Addresses of deployed things, as reported by runners, parsed by a closed syntax.

Terraform resources have a path of names and keys, objects in a cluster one of slashes.

A runner is not trusted, but its report of lost work must be kept. So an invalid address becomes a
visible text that says so, with a digest that keeps different ones apart.
"""

import hashlib
import re

from exclave.base.hcl import Attribute, Index, Traversal, escape, write_block
from exclave.base.printable import escape_line

MOST_CHARS = 2000
_SHOWN_CHARS = 200
_USUAL_STEP = r'[A-Za-z_][A-Za-z0-9_-]*(?:\[(?:0|[1-9][0-9]{0,17}|"[A-Za-z0-9 _./:@=,+-]*")\])?'
_USUAL = re.compile(rf"{_USUAL_STEP}(?:\.{_USUAL_STEP})+")
"""Addresses that are written in one way only: a state may have thousands, so this saves time."""
# A name may have been masked on the runner in part: `***`.
_STEP = re.compile(r'\.?((?![\d-])[\w*-]+)|\[([0-9]{1,18})\]|\["((?:[^"\\]|\\.)*)"\]')
_NAME = re.compile(r"(?![\d-])[\w*-]{1,200}")
_UNREADABLE = re.compile(r"\(unreadable (?:address|name) [0-9a-f]{12}: [^\n]{0,2000}\)")
_ESCAPED = re.compile(
    r"\\(?:([nrt\"\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|.)|([$%])\4(?=\{)", re.DOTALL
)
_SHORT = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_MOST_CODE = 0x10FFFF


def read_address(text: str) -> str:
    """Return the canonical form of an address, or a visible text if it is invalid.

    The empty text stays empty; the function is idempotent.
    """
    if not text or (len(text) <= MOST_CHARS and _USUAL.fullmatch(text)) or _is_unreadable(text):
        return text
    steps = parse_address(text)
    return _mark_unreadable("address", text) if steps is None else _write(steps)


def read_name(text: str) -> str:
    """Return the name of an output, or a visible text if it is invalid."""
    if _NAME.fullmatch(text) or _is_unreadable(text):
        return text
    return _mark_unreadable("name", text)


def parse_address(text: str) -> Traversal | None:
    """Return the steps of an address such as `module.a["k"].aws_vpc.b[0]`; None if invalid."""
    if len(text) > MOST_CHARS:
        return None
    steps: list[Attribute | Index] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (text[at] == ".") != (at > 0 and match[1] is not None):
            return None
        step = _read_step(match)
        follows_name = bool(steps) and isinstance(steps[-1], Attribute)
        if step is None or (isinstance(step, Index) and not follows_name):
            return None
        steps.append(step)
        at = match.end()
    names = sum(isinstance(step, Attribute) for step in steps)
    return tuple(steps) if names > 1 else None


def write_import(address: str, identity: str) -> str:
    """Return the HCL block that brings a resource into the state.

    Empty if the address is unreadable, or was masked in part: there is nothing to import to.
    """
    steps = parse_address(address)
    try:
        return "" if steps is None else write_block("import", {"to": steps, "id": identity})
    except ValueError:
        return ""


def _read_step(match: re.Match[str]) -> Attribute | Index | None:
    name, number, key = match.groups()
    if name is not None:
        return Attribute(name)
    if number is not None:
        return Index(int(number))
    decoded = _unescape(key)
    return None if decoded is None else Index(decoded)


def _unescape(text: str) -> str | None:
    """Return the value of a quoted string; None if it has an escape that HCL does not know."""
    broken = False

    def replace(match: re.Match[str]) -> str:
        nonlocal broken
        short, four, eight, doubled = match.groups()
        if doubled:
            return str(doubled)
        if short:
            return _SHORT[short]
        code = int(four or eight or "110000", 16)
        if code > _MOST_CODE:
            broken = True
            return ""
        return chr(code)

    decoded = _ESCAPED.sub(replace, text)
    return None if broken else decoded


def _write(steps: Traversal) -> str:
    """Return an address as text; unlike `write_traversal`, names may be partly masked."""
    text = ""
    for step in steps:
        match step:
            case Attribute(name):
                text += f".{name}" if text else name
            case Index(int(key)):
                text += f"[{key}]"
            case Index(str(key)):
                text += f'["{escape(key)}"]'
    return text


def _mark_unreadable(what: str, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    shown = escape_line(text[:_SHOWN_CHARS]) + ("…" if len(text) > _SHOWN_CHARS else "")
    return f"(unreadable {what} {digest}: {shown})"


def _is_unreadable(text: str) -> bool:
    return text.isprintable() and _UNREADABLE.fullmatch(text) is not None
