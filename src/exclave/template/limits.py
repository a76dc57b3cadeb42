"""Limits of one rendering: counted, never timed, so the result is the same on every machine."""

from dataclasses import dataclass

from exclave.template.problems import Fault


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one rendering; exceeding any of them is a `TemplateProblem`."""

    steps: int = 500_000
    """Nodes walked, functions called, and the sizes of what they handle: about 2 s of work."""

    depth: int = 100
    """Nesting of blocks, parentheses and template calls, at parse time and at run time."""

    output: int = 1024 * 1024
    """Characters of the result, and bytes of any text on the way to it."""

    items: int = 100_000
    """Elements of one list that a template builds."""

    source: int = 1024 * 1024
    """Characters of the template itself."""

    tokens: int = 100_000
    """Names, numbers, marks and texts that the template is made of."""


DEFAULT_LIMITS = Limits()

_BYTES_PER_STEP = 16
_ITEMS_PER_STEP = 4


def weigh(value: object) -> int:
    """Return the number of steps that traversing a value costs."""
    if isinstance(value, str):
        return len(value) // _BYTES_PER_STEP
    return len(value) // _ITEMS_PER_STEP if isinstance(value, list | dict) else 0


class Budget:
    """What remains of the limits while a template runs."""

    __slots__ = ("_left", "depth", "limits")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.depth = 0
        self._left = limits.steps

    @property
    def left(self) -> int:
        """The steps that remain; negative if the last one exceeded the limit."""
        return self._left

    def count(self, steps: int) -> None:
        """Count work that is already done; the next step raises if it was too much."""
        self._left -= steps

    def empty(self) -> None:
        """Use up the budget, because more than all of it was requested."""
        self._left = -1

    def spend(self, steps: int = 1) -> None:
        """Count work that is about to be done; raise if it exceeds the budget."""
        self._left -= steps
        if self._left < 0:
            raise Fault(
                f"the template needs more than {self.limits.steps} steps",
                hint="Shorten its loops, or prepare the value before it gets here.",
            )

    def enter(self) -> None:
        """Enter a nesting level; the caller leaves it by decrementing `depth`."""
        self.depth += 1
        if self.depth > self.limits.depth:
            raise Fault(
                f"the template nests deeper than {self.limits.depth} levels",
                hint="Look for a template or a value that contains itself.",
            )

    def check_text(self, size: int) -> None:
        """Count a text as work and raise if it is too large, if possible before it is built."""
        self.refuse_text(size)
        self.spend(size // _BYTES_PER_STEP)

    def refuse_text(self, size: int) -> None:
        """Raise if a text is too large, without counting it as work."""
        if size > self.limits.output:
            raise Fault(f"a text would be larger than {self.limits.output} bytes")

    def refuse_items(self, count: int) -> None:
        """Raise if a list is too long, without counting it as work."""
        if count > self.limits.items:
            raise Fault(f"a list would have more than {self.limits.items} elements")

    def check_items(self, count: int) -> None:
        """Count a list as work and raise if it is too long, if possible before it is built."""
        self.refuse_items(count)
        self.spend(count // _ITEMS_PER_STEP)
