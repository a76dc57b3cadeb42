"""The parsed template: frozen values, each with the offset where it starts."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Dot:
    """The current value: `.`."""

    at: int


@dataclass(frozen=True, slots=True)
class Nil:
    """The constant `nil`."""

    at: int


@dataclass(frozen=True, slots=True)
class Bool:
    """`true` or `false`."""

    at: int
    value: bool


@dataclass(frozen=True, slots=True)
class String:
    """A quoted or raw string."""

    at: int
    value: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number: as an integer and as a float where it can be either, and what it is by itself."""

    at: int
    text: str
    integer: int | None
    real: float | None
    ideal: int | float | None


@dataclass(frozen=True, slots=True)
class Field:
    """A chain of keys below the current value: `.a.b`."""

    at: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable and the keys below it: `$`, `$x.a.b`."""

    at: int
    name: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """The name of a function."""

    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Chain:
    """Keys below a parenthesised pipeline or a function: `(…).a.b`."""

    at: int
    base: "Pipe | Function"
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """An operand or a call: one stage of a pipeline."""

    at: int
    args: tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Pipe:
    """Commands, each handing its value to the next, and the variables that keep the last one."""

    at: int
    variables: tuple[str, ...]
    assigns: bool
    commands: tuple[Command, ...]


Operand: TypeAlias = Dot | Nil | Bool | String | Number | Field | Variable | Function | Chain | Pipe


@dataclass(frozen=True, slots=True)
class Text:
    """Text outside of actions, after trimming."""

    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """A pipeline whose value is printed, or kept in a variable."""

    at: int
    pipe: Pipe


@dataclass(frozen=True, slots=True)
class Branch:
    """A condition and what follows from it."""

    pipe: Pipe
    body: "Body"


@dataclass(frozen=True, slots=True)
class If:
    """`if`, `else if`, `else`."""

    at: int
    branches: tuple[Branch, ...]
    otherwise: "Body | None"


@dataclass(frozen=True, slots=True)
class With:
    """`with`, `else with`, `else`: like `if`, but the value becomes the dot."""

    at: int
    branches: tuple[Branch, ...]
    otherwise: "Body | None"


@dataclass(frozen=True, slots=True)
class Range:
    """A loop over a list, a map or an integer."""

    at: int
    pipe: Pipe
    body: "Body"
    otherwise: "Body | None"


@dataclass(frozen=True, slots=True)
class Include:
    """`template "name" pipeline`, also the place of a `block`."""

    at: int
    name: str
    pipe: Pipe | None


@dataclass(frozen=True, slots=True)
class Break:
    """Leave the loop."""

    at: int


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on with the next element."""

    at: int


Node: TypeAlias = Text | Action | If | With | Range | Include | Break | Continue
Body: TypeAlias = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: ready to render any number of times, with its named parts."""

    name: str
    text: str
    root: str
    body: Body
    parts: dict[str, Body]
    functions: frozenset[str]
    unknown_part: tuple[str, int] | None = None
    """A part that is called and not defined, and where: an error only when it is reached."""
