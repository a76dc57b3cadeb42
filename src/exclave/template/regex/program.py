"""From a syntax tree to the instructions that the matcher runs."""

from dataclasses import dataclass
from typing import assert_never

from exclave.template.regex.tree import (
    Anchor,
    Assert,
    BadPattern,
    Chars,
    Charset,
    Choice,
    Group,
    Repeat,
    Sequence,
    Tree,
)

MOST_INSTRUCTIONS = 10_000


@dataclass(slots=True)
class Jump:
    """Continue at one instruction, or at two in order of preference."""

    first: int
    second: int = -1


@dataclass(frozen=True, slots=True)
class Save:
    """Store the position of a group boundary."""

    slot: int


@dataclass(frozen=True, slots=True)
class Accept:
    """The pattern matches."""


Instruction = Jump | Save | Accept | Anchor | Charset


def compile_tree(tree: Tree) -> tuple[Instruction, ...]:
    """Return the program of a whole pattern."""
    compiler = _Compiler()
    compiler.add_group(0, tree)
    compiler.emit(Accept())
    return tuple(compiler.program)


class _Compiler:
    """Compiles a syntax tree to the instructions that Go and RE2 make of it.

    Methods that add a tree return whether it can match the empty text.
    """

    def __init__(self) -> None:
        self.program: list[Instruction] = []

    def emit(self, instruction: Instruction) -> None:
        if len(self.program) >= MOST_INSTRUCTIONS:
            raise BadPattern("the pattern is too large")
        self.program.append(instruction)

    def add_group(self, number: int, tree: Tree) -> bool:
        self.emit(Save(2 * number))
        nullable = self._add(tree)
        self.emit(Save(2 * number + 1))
        return nullable

    def _add(self, tree: Tree) -> bool:
        match tree:
            case Chars():
                self.emit(tree.charset)
                return False
            case Assert():
                self.emit(tree.anchor)
                return True
            case Group():
                return self.add_group(tree.number, tree.inner)
            case Sequence():
                nullables = [self._add(item) for item in tree.items]
                return all(nullables)
            case Choice():
                return self._add_choice(tree)
            case Repeat():
                return self._add_repeat(tree)
            case _:
                assert_never(tree)

    def _add_choice(self, tree: Choice) -> bool:
        exits: list[Jump] = []
        nullable = False
        for item in tree.items[:-1]:
            fork = Jump(len(self.program) + 1)
            self.emit(fork)
            nullable |= self._add(item)
            leave = Jump(-1)
            self.emit(leave)
            exits.append(leave)
            fork.second = len(self.program)
        nullable |= self._add(tree.items[-1])
        for leave in exits:
            leave.first = len(self.program)
        return nullable

    def _add_repeat(self, tree: Repeat) -> bool:
        if tree.most is None:
            return self._add_star(tree) if tree.least == 0 else self._add_plus(tree)
        size = len(self.program)
        nullable = self._add_copies(tree.inner, tree.least)
        if tree.least and len(self.program) == size:
            return True
        forks = []
        for _ in range(tree.most - tree.least):
            forks.append(self._fork(len(self.program) + 1, lazy=tree.lazy))
            self._add(tree.inner)
        self._land(forks, lazy=tree.lazy)
        return nullable

    def _add_star(self, tree: Repeat) -> bool:
        """Add `x*`: a loop that tests before each round, or `(x+)?` if a round may match nothing.

        In the first form such a round would come back to a test that was made at this place
        already, so it could not end the loop: an alternative that is empty and comes first would
        lose against those after it.
        """
        start = len(self.program)
        forks = [self._fork(start + 1, lazy=tree.lazy)]
        if self._add(tree.inner):
            forks.append(self._fork(start + 1, lazy=tree.lazy))
        else:
            self.emit(Jump(start))
        self._land(forks, lazy=tree.lazy)
        return True

    def _add_plus(self, tree: Repeat) -> bool:
        """Add `x+`, or `xxx+` for `x{3,}`: a loop that tests after each round."""
        self._add_copies(tree.inner, tree.least - 1)
        start = len(self.program)
        nullable = self._add(tree.inner)
        self._land([self._fork(start, lazy=tree.lazy)], lazy=tree.lazy)
        return nullable

    def _add_copies(self, tree: Tree, count: int) -> bool:
        """Add a tree several times, or once if it has no instructions."""
        nullable = True
        for _ in range(count):
            size = len(self.program)
            nullable = self._add(tree)
            if len(self.program) == size:
                break
        return nullable

    def _fork(self, inside: int, *, lazy: bool) -> Jump:
        """Add a jump into a repetition or, once `_land` has set it, out of it."""
        fork = Jump(-1, inside) if lazy else Jump(inside, -1)
        self.emit(fork)
        return fork

    def _land(self, forks: list[Jump], *, lazy: bool) -> None:
        for fork in forks:
            if lazy:
                fork.first = len(self.program)
            else:
                fork.second = len(self.program)
