"""sprig: upper and lower case, and identifier styles (camel, snake, kebab)."""

import unicodedata

from exclave.template.functions.signature import Env, Param, Registry
from exclave.template.functions.strings import SPACES
from exclave.template.text import is_raw_byte, to_bytes

CASES = Registry()
TEXT = Param.TEXT
_REPLACEMENT = "\ufffd"


def _read_runes(text: str) -> str:
    """Return the text as Go goes through it: each byte that is not UTF-8 is a replacement."""
    if text.isascii():
        return text
    return "".join(_REPLACEMENT if is_raw_byte(char) else char for char in text)


def _upper(char: str) -> str:
    """Return the upper case of a character, as Go does: only if it is a single character too."""
    changed = char.upper()
    return changed if len(changed) == 1 else char


def _lower(char: str) -> str:
    changed = char.lower()
    return changed if len(changed) == 1 else char


def _title(char: str) -> str:
    changed = char.title()
    return changed if len(changed) == 1 else char


@CASES.add("upper", takes=(TEXT,))
def upper(text: str) -> str:
    """Return the text in upper case."""
    return text.upper() if text.isascii() else "".join(map(_upper, _read_runes(text)))


@CASES.add("lower", takes=(TEXT,))
def lower(text: str) -> str:
    """Return the text in lower case."""
    return text.lower() if text.isascii() else "".join(map(_lower, _read_runes(text)))


@CASES.add("title", takes=(TEXT,))
def title(text: str) -> str:
    """Return the text with the first letter of each word in title case."""
    done: list[str] = []
    previous = " "
    for char in _read_runes(text):
        done.append(_title(char) if _separates(previous) else char)
        previous = char
    return "".join(done)


def _separates(char: str) -> bool:
    if char.isascii():
        return not (char.isalnum() or char == "_")
    return char in SPACES


@CASES.add("untitle", takes=(TEXT,))
def untitle(text: str) -> str:
    """Return the text with the first letter of each word in lower case."""
    done: list[str] = []
    begins = True
    for char in _read_runes(text):
        if char in SPACES:
            begins = True
            done.append(char)
        else:
            done.append(_lower(char) if begins else char)
            begins = False
    return "".join(done)


@CASES.add("swapcase", takes=(TEXT,))
def swap_case(text: str) -> str:
    """Return the text with case swapped; a lower-case first letter of a word becomes title case."""
    done: list[str] = []
    begins = True
    for char in _read_runes(text):
        if char.isupper() or unicodedata.category(char) == "Lt":
            done.append(_lower(char))
            begins = False
        elif char.islower():
            done.append(_title(char) if begins else _upper(char))
            begins = False
        else:
            done.append(char)
            begins = char in SPACES
    return "".join(done)


@CASES.add("nospace", takes=(TEXT,))
def remove_space(text: str) -> str:
    """Return the text without white space; byte by byte, like sprig."""
    data = to_bytes(text)
    kept = [chr(byte) for byte in data if chr(byte) not in SPACES]
    return text if len(kept) == len(data) else "".join(kept)


@CASES.add("initials", takes=(TEXT,))
def initials(text: str) -> str:
    """Return the first letter of each word; byte by byte, like sprig."""
    done: list[str] = []
    begins = True
    for byte in to_bytes(text):
        char = chr(byte)
        if char in SPACES:
            begins = True
        elif begins:
            done.append(char)
            begins = False
    return "".join(done)


def _connects(char: str) -> bool:
    return char in "-_" or char in SPACES


@CASES.add("camelcase", takes=(TEXT,))
def camel_case(text: str) -> str:
    """Return the text in camel case: `some_words` becomes `SomeWords`."""
    text = _read_runes(text)
    start = 0
    while start < len(text) and _connects(text[start]):
        start += 1
    if start == len(text):
        return text + text[-1:]
    done = [text[:start]]
    capital = text[start].isupper()
    current = _upper(text[start])
    for char in text[start + 1 :]:
        previous, current = current, char
        if _connects(current) and _connects(previous):
            done.append(previous)
        elif _connects(previous):
            capital = current.isupper()
            current = _upper(current)
        else:
            if capital and current.isupper():
                current = _lower(current)
            else:
                capital = False
            done.append(previous)
    return "".join([*done, current])


@CASES.add_with_env("snakecase", takes=(TEXT,))
def snake_case(env: Env, text: str) -> str:
    """Return the text in snake case."""
    return _join_words(env, text, "_")


@CASES.add_with_env("kebabcase", takes=(TEXT,))
def kebab_case(env: Env, text: str) -> str:
    """Return the text in kebab case."""
    return _join_words(env, text, "-")


_NUMBER, _UPPER, _LETTERS, _CONNECTOR, _PUNCTUATION, _OTHER = range(6)


_IDEOGRAPHS = (range(0x3400, 0x4D86), range(0x4E00, 0x9FCD), range(0x20000, 0x2B81E))
"""Chinese characters, which form words of their own."""


def _is_unreadable(char: str) -> bool:
    return char == _REPLACEMENT or is_raw_byte(char)


def _split_runes(text: str) -> list[str]:
    """Split a text into characters; what is not UTF-8 belongs to the next one, or to the last."""
    runes: list[str] = []
    unreadable = ""
    for char in text:
        if _is_unreadable(char):
            unreadable += char
        else:
            runes.append(unreadable + char)
            unreadable = ""
    if unreadable:
        runes.append(runes.pop() + unreadable if runes else unreadable)
    return runes


def _find_readable(rune: str) -> str:
    return next((char for char in rune if not _is_unreadable(char)), _REPLACEMENT)


def _is_punctuation(rune: str) -> bool:
    return unicodedata.category(_find_readable(rune)).startswith("P")


def _class_of(rune: str) -> int:
    char = _find_readable(rune)
    if _connects(char):
        return _CONNECTOR
    if _is_punctuation(char):
        return _PUNCTUATION
    category = unicodedata.category(char)
    if category == "Lu":
        return _UPPER
    if category.startswith("L"):
        return _OTHER if any(ord(char) in block for block in _IDEOGRAPHS) else _LETTERS
    return _NUMBER if category.startswith("N") else _OTHER


def _split_words(text: str) -> list[tuple[int, str]]:
    """Split a text where the character class changes; a capital belongs to the letters after it."""
    runes = _split_runes(text)
    kinds = [_class_of(rune) for rune in runes]
    words: list[tuple[int, str]] = []
    at = 0
    while at < len(runes):
        kind = kinds[at]
        end = at + 1
        if kind == _UPPER and kinds[end : end + 1] == [_LETTERS]:
            end = _skip(kinds, end, _LETTERS)
        else:
            end = _skip(kinds, end, kind)
            while kind == _PUNCTUATION and end < len(runes) and _is_punctuation(runes[end]):
                end += 1  # a hyphen or underscore after punctuation belongs to it
            if kind == _UPPER and end - at > 1 and kinds[end : end + 1] == [_LETTERS]:
                end -= 1
        words.append((kind, "".join(runes[at:end])))
        at = end
    return words


def _skip(kinds: list[int], at: int, kind: int) -> int:
    while at < len(kinds) and kinds[at] == kind:
        at += 1
    return at


_JOINED = frozenset({_CONNECTOR, _PUNCTUATION})


class _WordJoiner:
    """Joins words in lower case; a number belongs to the word before it or the letters after it."""

    def __init__(self, words: list[tuple[int, str]], mark: str) -> None:
        self._words = words
        self._mark = mark
        self._at = 0
        self._done: list[str] = []

    def run(self) -> str:
        while self._at < len(self._words) - 1:
            kind, word = self._words[self._at]
            self._at += 1
            self._add(kind, word)
            if kind == _CONNECTOR:
                continue
            if kind == _NUMBER:
                self._finish_number()
            elif kind != _PUNCTUATION:
                self._after_word()
        if self._at < len(self._words):
            self._add(*self._words[self._at])
        return "".join(self._done)

    def _add(self, kind: int, word: str) -> None:
        if kind == _CONNECTOR:
            word = "".join(self._mark if _connects(char) else char for char in _read_runes(word))
        self._done.append(lower(word) if kind == _UPPER else word)

    def _kind(self) -> int | None:
        return self._words[self._at][0] if self._at < len(self._words) else None

    def _finish_number(self) -> None:
        while self._kind() in (_LETTERS, _NUMBER):
            self._add(*self._words[self._at])
            self._at += 1
        if self._kind() is not None and self._kind() not in _JOINED:
            self._done.append(self._mark)

    def _after_word(self) -> None:
        kind = self._kind()
        if kind != _NUMBER:
            if kind not in _JOINED:
                self._done.append(self._mark)
            return
        if self._at == len(self._words) - 1:
            return
        number = self._words[self._at]
        self._at += 1
        if self._kind() != _LETTERS:
            self._add(*number)
            if self._kind() not in _JOINED:
                self._done.append(self._mark)
            return
        self._done.append(self._mark)
        self._add(*number)
        self._finish_number()


def _join_words(env: Env, text: str, mark: str) -> str:
    env.budget.spend(len(text))
    return _WordJoiner(_split_words(text), mark).run()
