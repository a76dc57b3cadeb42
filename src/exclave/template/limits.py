"""What one rendering may use: counted, never timed, so that the answer is the same everywhere."""

from dataclasses import dataclass

from exclave.template.problems import Fault


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one rendering may do; passing any of them is a `TemplateProblem`."""

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
    """Count the steps that a value costs whoever looks at all of it."""
    if isinstance(value, str):
        return len(value) // _BYTES_PER_STEP
    return len(value) // _ITEMS_PER_STEP if isinstance(value, list | dict) else 0


class Budget:
    """What is left of the limits while a template runs."""

    __slots__ = ("_left", "depth", "limits")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.depth = 0
        self._left = limits.steps

    @property
    def left(self) -> int:
        """The steps that may still be done; below zero, the last one was too much."""
        return self._left

    def count(self, steps: int) -> None:
        """Count work that is done already; the next step finds out that it was too much."""
        self._left -= steps

    def empty(self) -> None:
        """Leave nothing, as more than all of it was asked for."""
        self._left = -1

    def spend(self, steps: int = 1) -> None:
        """Count work that is about to be done."""
        self._left -= steps
        if self._left < 0:
            raise Fault(
                f"the template needs more than {self.limits.steps} steps",
                hint="Shorten its loops, or prepare the value before it gets here.",
            )

    def enter(self) -> None:
        """Go one level deeper; the caller leaves again by lowering `depth`."""
        self.depth += 1
        if self.depth > self.limits.depth:
            raise Fault(
                f"the template nests deeper than {self.limits.depth} levels",
                hint="Look for a template or a value that contains itself.",
            )

    def check_text(self, size: int) -> None:
        """Refuse a text that is too large, before it is built where that is possible."""
        self.refuse_text(size)
        self.spend(size // _BYTES_PER_STEP)

    def refuse_text(self, size: int) -> None:
        """Refuse a text that is too large, without counting it as work."""
        if size > self.limits.output:
            raise Fault(f"a text would be larger than {self.limits.output} bytes")

    def refuse_items(self, count: int) -> None:
        """Refuse a list that is too long, without counting it as work."""
        if count > self.limits.items:
            raise Fault(f"a list would have more than {self.limits.items} elements")

    def check_items(self, count: int) -> None:
        """Refuse a list that is too long, before it is built where that is possible."""
        self.refuse_items(count)
        self.spend(count // _ITEMS_PER_STEP)
