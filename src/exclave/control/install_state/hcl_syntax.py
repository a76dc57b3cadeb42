"""Texts in HCL: whether strings, comments and brackets close and names have values.

That is what people break. Terraform on the runner has the last word.
"""

import re

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*|//[^\n]*|/\*.*?\*/)
      | (?P<heredoc><<-?(?P<mark>[A-Za-z_]\w*)[ \t]*\n)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<bracket>[()\[\]{}])
      | (?P<broken>"|/\*)""",
    re.VERBOSE | re.DOTALL,
)
_EMPTY = re.compile(r"^[ \t]*[A-Za-z_][\w-]*[ \t]*(=)[ \t]*$", re.MULTILINE)
_CLOSES = {")": "(", "]": "[", "}": "{"}


def find_hcl_flaw(text: str) -> str:
    """Say why a text cannot be HCL; empty if nothing speaks against it."""
    opened: list[tuple[str, str]] = []
    bare: list[str] = []
    at = 0
    while found := _TOKEN.search(text, at):
        bare.append(text[at : found.start()] + _blank(found))
        at = found.end()
        if found["heredoc"]:
            end = re.compile(rf"^[ \t]*{found['mark']}[ \t]*$", re.MULTILINE).search(text, at)
            if end is None:
                return (
                    f"not HCL: `<<{found['mark']}` at {_tell(text, found.start())} is never closed"
                )
            bare.append("".join(char if char == "\n" else "-" for char in text[at : end.end()]))
            at = end.end()
        elif found["broken"]:
            return f"not HCL: `{found[0]}` at {_tell(text, found.start())} is never closed"
        elif found["bracket"]:
            flaw = _nest(opened, found[0], _tell(text, found.start()))
            if flaw:
                return flaw
    if opened:
        sign, place = opened[-1]
        return f"not HCL: `{sign}` at {place} is never closed"
    return _find_empty("".join(bare) + text[at:])


def _find_empty(text: str) -> str:
    """Find a name without a value; what stands in strings and comments is blank here."""
    found = _EMPTY.search(text)
    return f"not HCL: `=` at {_tell(text, found.end(1) - 1)} has no value" if found else ""


def _blank(found: re.Match[str]) -> str:
    """Write a token so that places stay: a comment is nothing, all else is something."""
    fill = " " if found["comment"] else "-"
    return "".join(char if char == "\n" else fill for char in found[0])


def _nest(opened: list[tuple[str, str]], sign: str, place: str) -> str:
    if sign not in _CLOSES:
        opened.append((sign, place))
    elif not opened or opened.pop()[0] != _CLOSES[sign]:
        return f"not HCL: `{sign}` at {place} closes nothing"
    return ""


def _tell(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"
