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


def _class_of(char: str) -> int:
    if _connects(char):
        return _CONNECTOR
    category = unicodedata.category(char)
    if category.startswith("P"):
        return _PUNCTUATION
    if category == "Lu":
        return _UPPER
    if category.startswith("L"):
        return _LETTERS
    return _NUMBER if category.startswith("N") else _OTHER


def _split_words(text: str) -> list[tuple[int, str]]:
    """Split a text where the character class changes; a capital belongs to the letters after it."""
    words: list[tuple[int, str]] = []
    at = 0
    while at < len(text):
        kind = _class_of(text[at])
        end = at + 1
        if kind == _UPPER and end < len(text) and _class_of(text[end]) == _LETTERS:
            while end < len(text) and _class_of(text[end]) == _LETTERS:
                end += 1
        else:
            while end < len(text) and _class_of(text[end]) == kind:
                end += 1
            runs_on = end < len(text) and _class_of(text[end]) == _LETTERS
            if kind == _UPPER and end - at > 1 and runs_on:
                end -= 1
        words.append((kind, text[at:end]))
        at = end
    return words


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
            if kind == _CONNECTOR:
                self._done.append(self._mark * len(word))
                continue
            self._add(word)
            if kind == _NUMBER:
                self._finish_number()
            elif kind != _PUNCTUATION:
                self._after_word()
        if self._at < len(self._words):
            kind, word = self._words[self._at]
            self._done.append(self._mark * len(word) if kind == _CONNECTOR else lower(word))
        return "".join(self._done)

    def _add(self, word: str) -> None:
        self._done.append(lower(word))

    def _kind(self) -> int | None:
        return self._words[self._at][0] if self._at < len(self._words) else None

    def _finish_number(self) -> None:
        while self._kind() in (_LETTERS, _NUMBER):
            self._add(self._words[self._at][1])
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
        number = self._words[self._at][1]
        self._at += 1
        if self._kind() != _LETTERS:
            self._add(number)
            if self._kind() not in _JOINED:
                self._done.append(self._mark)
            return
        self._done.append(self._mark)
        self._add(number)
        self._finish_number()


def _join_words(env: Env, text: str, mark: str) -> str:
    env.budget.spend(len(text))
    return _WordJoiner(_split_words(text), mark).run()
