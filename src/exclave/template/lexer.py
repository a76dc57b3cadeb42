"""The lexer: splits a template into tokens and drops trim markers and comments."""

from dataclasses import dataclass
from enum import StrEnum

from exclave.template.problems import TemplateProblem, TooManyTokens, find_position


class Kind(StrEnum):
    """The kind of a token."""

    TEXT = "text"
    OPEN = "{{"
    CLOSE = "}}"
    SPACE = "space"
    ASSIGN = "="
    DECLARE = ":="
    PIPE = "|"
    COMMA = ","
    LEFT = "("
    RIGHT = ")"
    DOT = "."
    FIELD = "field"
    VARIABLE = "variable"
    NAME = "name"
    KEYWORD = "keyword"
    BOOL = "bool"
    NIL = "nil"
    NUMBER = "number"
    CHAR = "character"
    STRING = "string"
    RAW = "raw string"
    OTHER = "other"
    END = "end of template"


@dataclass(frozen=True, slots=True)
class Token:
    """A token and the offset where it starts."""

    kind: Kind
    text: str
    at: int


KEYWORDS = frozenset(
    {"block", "break", "continue", "define", "else", "end", "if", "range", "template", "with"}
)

_SPACES = " \t\r\n"
_SINGLE = {"=": Kind.ASSIGN, "|": Kind.PIPE, ",": Kind.COMMA}
_AFTER_NAME = ".,|:()"
_DIGITS = {"x": "0123456789abcdefABCDEF_", "o": "01234567_", "b": "01_"}
_DECIMAL = "0123456789_"


class Lexer:
    """Splits a template into tokens in one pass."""

    def __init__(self, text: str, name: str, most: int) -> None:
        self._text = text
        self._name = name
        self._most = most
        self._at = 0
        self._parens = 0
        self._tokens: list[Token] = []

    def run(self) -> list[Token]:
        """Return all tokens; the last one is END."""
        trim = False
        while self._at < len(self._text):
            opening = self._text.find("{{", self._at)
            stop = len(self._text) if opening < 0 else opening
            self._lex_text(stop, trim_left=trim, trim_right=self._has_left_marker(stop))
            if opening < 0:
                break
            trim = self._lex_action()
        self._tokens.append(Token(Kind.END, "", len(self._text)))
        return self._tokens

    def _lex_text(self, stop: int, *, trim_left: bool, trim_right: bool) -> None:
        start, end = self._at, stop
        if trim_left:
            while start < end and self._text[start] in _SPACES:
                start += 1
        if trim_right:
            while end > start and self._text[end - 1] in _SPACES:
                end -= 1
        if end > start:
            self._tokens.append(Token(Kind.TEXT, self._text[start:end], start))
        self._at = stop

    def _has_left_marker(self, opening: int) -> bool:
        after = self._text[opening + 2 : opening + 4]
        return len(after) == 2 and after[0] == "-" and after[1] in _SPACES  # noqa: PLR2004 - marker and space

    def _closing(self) -> tuple[bool, bool]:
        """Return whether an action closes here, and whether it trims."""
        text, at = self._text, self._at
        if text.startswith("-}}", at + 1) and text[at] in _SPACES:
            return True, True
        return text.startswith("}}", at), False

    def _lex_action(self) -> bool:
        """Read one action or comment; return whether the text after it is left-trimmed."""
        start = self._at
        self._at += 4 if self._has_left_marker(start) else 2
        if self._text.startswith("/*", self._at):
            return self._skip_comment(start)
        self._tokens.append(Token(Kind.OPEN, "{{", start))
        self._parens = 0
        while True:
            closes, trims = self._closing()
            if closes:
                return self._close(start, trims=trims)
            if self._at >= len(self._text):
                raise self._problem("this action is never closed", start, "Add `}}`.")
            if len(self._tokens) > self._most:
                position = find_position(self._text, start)
                raise TooManyTokens(
                    f"the template has more than {self._most} parts",
                    file=self._name,
                    line=position.line,
                    column=position.column,
                )
            self._lex_token(start)

    def _close(self, start: int, *, trims: bool) -> bool:
        if self._parens:
            raise self._problem("a parenthesis is not closed", start, "Add `)`.")
        self._at += 2 if trims else 0
        self._tokens.append(Token(Kind.CLOSE, "}}", self._at))
        self._at += 2
        return trims

    def _skip_comment(self, start: int) -> bool:
        end = self._text.find("*/", self._at + 2)
        if end < 0:
            raise self._problem("this comment is never closed", start, "Close it with `*/}}`.")
        self._at = end + 2
        closes, trims = self._closing()
        if not closes:
            raise self._problem("a comment must fill its action", start, "Write `{{/* … */}}`.")
        self._at += 4 if trims else 2
        return trims

    def _lex_token(self, start: int) -> None:  # noqa: C901 - one line per first character
        char = self._text[self._at]
        if self._text.startswith("{{", self._at):
            message = "this action is not closed before the next one"
            raise self._problem(message, start, "Add `}}`.")
        following = self._text[self._at + 1 : self._at + 2]
        if char in _SPACES:
            self._lex_space()
        elif char in _SINGLE:
            self._emit(_SINGLE[char], 1)
        elif char in "()":
            self._lex_paren(char)
        elif char == ":" and following == "=":
            self._emit(Kind.DECLARE, 2)
        elif char in "\"'":
            self._lex_quoted(char)
        elif char == "`":
            self._lex_raw(start)
        elif char == "$" or (char == "." and not _is_digit(following)):
            self._lex_field(char)
        elif char in ".+-" or _is_digit(char):
            self._lex_number()
        elif _is_word(char):
            self._lex_word()
        elif char.isascii() and char.isprintable() and char != ":":
            self._emit(Kind.OTHER, 1)
        else:
            raise self._problem(f"unexpected character {char!r} in an action", self._at)

    def _emit(self, kind: Kind, length: int) -> None:
        text = self._text[self._at : self._at + length]
        self._tokens.append(Token(kind, text, self._at))
        self._at += length

    def _lex_space(self) -> None:
        end = self._at
        while end < len(self._text) and self._text[end] in _SPACES:
            end += 1
        if self._text.startswith("-}}", end):
            end -= 1
        self._emit(Kind.SPACE, end - self._at)

    def _lex_paren(self, char: str) -> None:
        self._parens += 1 if char == "(" else -1
        if self._parens < 0:
            raise self._problem("unexpected right parenthesis", self._at)
        self._emit(Kind(char), 1)

    def _lex_quoted(self, quote: str) -> None:
        end = self._at + 1
        while end < len(self._text) and self._text[end] not in (quote, "\n"):
            end += 2 if self._text[end] == "\\" and self._text[end + 1 : end + 2] != "\n" else 1
        if end >= len(self._text) or self._text[end] != quote:
            what = "string" if quote == '"' else "character"
            message, hint = f"this {what} is not closed on its line", f"Add `{quote}`."
            raise self._problem(message, self._at, hint)
        self._emit(Kind.STRING if quote == '"' else Kind.CHAR, end + 1 - self._at)

    def _lex_raw(self, start: int) -> None:
        end = self._text.find("`", self._at + 1)
        if end < 0:
            raise self._problem("this raw string is not closed", start, "Add a backquote.")
        self._emit(Kind.RAW, end + 1 - self._at)

    def _lex_field(self, char: str) -> None:
        end = self._at + 1
        while end < len(self._text) and _is_word(self._text[end]):
            end += 1
        self._check_end_of_word(end)
        if char == "$":
            self._emit(Kind.VARIABLE, end - self._at)
        else:
            self._emit(Kind.FIELD if end > self._at + 1 else Kind.DOT, end - self._at)

    def _lex_word(self) -> None:
        end = self._at
        while end < len(self._text) and _is_word(self._text[end]):
            end += 1
        self._check_end_of_word(end)
        word = self._text[self._at : end]
        if word in KEYWORDS:
            self._emit(Kind.KEYWORD, len(word))
        elif word in ("true", "false"):
            self._emit(Kind.BOOL, len(word))
        else:
            self._emit(Kind.NIL if word == "nil" else Kind.NAME, len(word))

    def _check_end_of_word(self, end: int) -> None:
        after = self._text[end : end + 1]
        if not after or after in _SPACES or after in _AFTER_NAME:
            return
        if self._text.startswith("}}", end):
            return
        hint = ""
        if after == "-":
            hint = 'A key with a hyphen is read with index: `index .a "b-c"`.'
        raise self._problem(f"unexpected character {after!r} after a name", end, hint)

    def _lex_number(self) -> None:
        end = self._scan_number(self._at)
        if self._text[end : end + 1] in ("+", "-") or self._text[end - 1] == "i":
            raise self._problem("complex numbers are not supported", self._at)
        if end < len(self._text) and _is_word(self._text[end]):
            raise self._problem(f"bad number {self._text[self._at : end + 1]!r}", self._at)
        self._emit(Kind.NUMBER, end - self._at)

    def _scan_number(self, at: int) -> int:
        text = self._text
        at = _skip(text, at, "+-", 1)
        digits = _DECIMAL
        if text[at : at + 1] == "0":
            at += 1
            prefix = text[at : at + 1].lower()
            if prefix in _DIGITS and prefix:
                digits = _DIGITS[prefix]
                at += 1
        at = _skip(text, at, digits)
        if text[at : at + 1] == ".":
            at = _skip(text, at + 1, digits)
        marks = {_DECIMAL: "eE", _DIGITS["x"]: "pP"}.get(digits, "")
        if text[at : at + 1] and text[at : at + 1] in marks:
            at = _skip(text, _skip(text, at + 1, "+-", 1), _DECIMAL)
        return _skip(text, at, "i", 1)

    def _problem(self, message: str, at: int, hint: str = "") -> TemplateProblem:
        position = find_position(self._text, at)
        return TemplateProblem(
            message, hint=hint, file=self._name, line=position.line, column=position.column
        )


def _skip(text: str, at: int, chars: str, most: int = 1 << 30) -> int:
    end = at
    while end < len(text) and end - at < most and text[end] in chars:
        end += 1
    return end


def _is_digit(char: str) -> bool:
    return char != "" and char in "0123456789"


def _is_word(char: str) -> bool:
    return char == "_" or char.isalpha() or char.isdecimal()
