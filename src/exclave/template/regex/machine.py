"""A regular expression matcher that simulates an NFA: without backtracking, so in linear time."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from exclave.template.limits import Budget
from exclave.template.regex.parser import Parser
from exclave.template.regex.program import (
    MOST_INSTRUCTIONS,
    Accept,
    Instruction,
    Jump,
    Save,
    compile_tree,
)
from exclave.template.regex.tree import Anchor, BadPattern, Charset

_LONGEST_PATTERN = 10_000
_VISITS_PER_STEP = 4
_KEPT_PATTERNS = 32

Slots = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled regular expression."""

    text: str
    program: tuple[Instruction, ...]
    groups: int
    names: dict[str, int]

    def search(self, text: str, start: int, budget: Budget) -> Slots | None:
        """Return the leftmost match from a position on, as starts and ends of all groups."""
        return _Run(self.program, 2 * (self.groups + 1), text, budget).search(start)

    def find_all(self, text: str, most: int, budget: Budget) -> Iterator[Slots]:
        """Return non-overlapping matches; an empty match right after another one does not count."""
        at, previous, count = 0, -1, 0
        while at <= len(text) and (most < 0 or count < most):
            match = self.search(text, at, budget)
            if match is None:
                return
            is_empty_repeat = match[1] == at and match[0] == previous
            at = at + 1 if match[1] == at else match[1]
            previous = match[1]
            if not is_empty_repeat:
                count += 1
                yield match


def compile_pattern(text: str, budget: Budget) -> Pattern:
    """Return a compiled pattern; raise `BadPattern` if Go would refuse it."""
    budget.spend(len(text))
    try:
        pattern = _compile(text)
    except BadPattern:
        budget.spend(MOST_INSTRUCTIONS // _VISITS_PER_STEP)
        raise
    budget.spend(len(pattern.program) // _VISITS_PER_STEP)
    return pattern


@functools.lru_cache(maxsize=_KEPT_PATTERNS)
def _compile(text: str) -> Pattern:
    if len(text) > _LONGEST_PATTERN:
        raise BadPattern("the pattern is too long")
    parser = Parser(text)
    program = compile_tree(parser.run())
    return Pattern(text, program, parser.groups, parser.names)


class _Run:
    """One search: the NFA threads in order of preference, all at the same character."""

    def __init__(
        self, program: tuple[Instruction, ...], slots: int, text: str, budget: Budget
    ) -> None:
        self._program = program
        self._slots = slots
        self._text = text
        self._budget = budget

    def search(self, start: int) -> Slots | None:
        threads: list[tuple[int, Slots]] = []
        match: Slots | None = None
        empty: Slots = (-1,) * self._slots
        for at in range(start, len(self._text) + 1):
            if match is None:
                threads = self._follow([*threads, (0, empty)], at)
            else:
                threads = self._follow(threads, at)
            if not threads:
                if match is not None:
                    break
                continue
            match, threads = self._step(threads, at, match)
        return match

    def _step(
        self, threads: list[tuple[int, Slots]], at: int, match: Slots | None
    ) -> tuple[Slots | None, list[tuple[int, Slots]]]:
        """Advance each thread over the character; a match drops all threads after it."""
        self._budget.spend(len(threads) // _VISITS_PER_STEP)
        char = self._text[at : at + 1]
        moved: list[tuple[int, Slots]] = []
        for position, slots in threads:
            instruction = self._program[position]
            if isinstance(instruction, Charset):
                if char and instruction.has(char):
                    moved.append((position + 1, slots))
            elif isinstance(instruction, Accept):
                return slots, moved
        return match, moved

    def _follow(self, threads: list[tuple[int, Slots]], at: int) -> list[tuple[int, Slots]]:
        """Follow jumps, saves and anchors until each thread needs a character."""
        waiting: list[tuple[int, Slots]] = []
        seen: set[int] = set()
        stack = threads[::-1]
        while stack:
            position, slots = stack.pop()
            if position in seen:
                continue
            seen.add(position)
            instruction = self._program[position]
            match instruction:
                case Jump():
                    if instruction.second >= 0:
                        stack.append((instruction.second, slots))
                    stack.append((instruction.first, slots))
                case Save():
                    slot = instruction.slot
                    stack.append((position + 1, (*slots[:slot], at, *slots[slot + 1 :])))
                case Anchor():
                    if _holds(instruction, self._text, at):
                        stack.append((position + 1, slots))
                case Charset() | Accept():
                    waiting.append((position, slots))
                case _:
                    assert_never(instruction)
        self._budget.spend(1 + len(seen) // _VISITS_PER_STEP)
        return waiting


def _holds(anchor: Anchor, text: str, at: int) -> bool:
    match anchor:
        case Anchor.TEXT_START:
            return at == 0
        case Anchor.TEXT_END:
            return at == len(text)
        case Anchor.LINE_START:
            return at == 0 or text[at - 1] == "\n"
        case Anchor.LINE_END:
            return at == len(text) or text[at] == "\n"
        case Anchor.BOUNDARY:
            return _is_boundary(text, at)
        case Anchor.NO_BOUNDARY:
            return not _is_boundary(text, at)
        case _:
            assert_never(anchor)


def _is_boundary(text: str, at: int) -> bool:
    before = at > 0 and _is_word(text[at - 1])
    after = at < len(text) and _is_word(text[at])
    return before != after


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")
