"""Texts in HCL: whether their strings, comments and brackets close, which is what people break."""

import re

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*|//[^\n]*|/\*.*?\*/)
      | (?P<heredoc><<-?(?P<mark>[A-Za-z_]\w*)[ \t]*\n)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<bracket>[()\[\]{}])
      | (?P<broken>"|/\*)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSES = {")": "(", "]": "[", "}": "{"}


def find_hcl_flaw(text: str) -> str:
    """Say why a text cannot be HCL; empty if nothing speaks against it."""
    opened: list[tuple[str, int]] = []
    at = 0
    while found := _TOKEN.search(text, at):
        at = found.end()
        if found["heredoc"]:
            end = re.compile(rf"^[ \t]*{found['mark']}[ \t]*$", re.MULTILINE).search(text, at)
            if end is None:
                return f"not HCL: `<<{found['mark']}` in line {_line(text, found)} is never closed"
            at = end.end()
        elif found["broken"]:
            return f"not HCL: `{found[0]}` in line {_line(text, found)} is never closed"
        elif found["bracket"]:
            flaw = _nest(opened, found[0], _line(text, found))
            if flaw:
                return flaw
    if opened:
        sign, line = opened[-1]
        return f"not HCL: `{sign}` in line {line} is never closed"
    return ""


def _nest(opened: list[tuple[str, int]], sign: str, line: int) -> str:
    if sign not in _CLOSES:
        opened.append((sign, line))
    elif not opened or opened.pop()[0] != _CLOSES[sign]:
        return f"not HCL: `{sign}` in line {line} closes nothing"
    return ""


def _line(text: str, found: re.Match[str]) -> int:
    return text.count("\n", 0, found.start()) + 1
