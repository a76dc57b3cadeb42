"""Makes templates by chance, from a seed, that touch as much of the language as possible."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.integration.template.shapes import KINDS, PLACES
from tests.integration.template.shapes import VALUES as VALUES


@dataclass(frozen=True)
class Case:
    number: int
    parts: str
    """Definitions, which stand at the top level."""

    body: str

    @property
    def text(self) -> str:
        return self.parts + self.body


class Generator:
    """Writes expressions of a wanted type; now and then one of another type."""

    def __init__(self, seed: int, number: int, wrong: float = 0.02) -> None:
        self.r = random.Random(seed * 1_000_003 + number)
        self.number = number
        self.wrong = wrong
        self.parts: list[str] = []
        self.variables: list[str] = []
        self.inside = 0

    def pick(self, *options: str) -> str:
        return self.r.choice(options)

    def case(self) -> Case:
        body = "".join(self.node(3) for _ in range(self.r.randint(1, 4)))
        return Case(self.number, "".join(self.parts), body)

    # -- expressions ---------------------------------------------------------------------------

    def expr(self, kind: str, depth: int) -> str:
        if self.r.random() < self.wrong:
            kind = self.pick("text", "int", "long", "real", "bool", "list", "map", "any")
        atoms, calls = KINDS[kind]
        if depth <= 0 or self.r.random() < 0.25:
            return self.r.choice(atoms)
        return f"({self.call(self.r.choice(calls), depth)})"

    def call(self, shape: str, depth: int) -> str:
        """Fill a shape such as `trunc INT TEXT`; now and then the last argument comes by a pipe."""
        words = [self.word(word, depth) for word in shape.split()]
        if len(words) > 1 and self.r.random() < 0.3:
            return f"{words[-1]} | {' '.join(words[:-1])}"
        return " ".join(words)

    def word(self, word: str, depth: int) -> str:
        if word.endswith("*"):
            return " ".join(self.word(word[:-1], depth) for _ in range(self.r.randint(0, 3)))
        return self.expr(word.lower(), depth - 1) if word in PLACES else word

    # -- statements ----------------------------------------------------------------------------

    def node(self, depth: int) -> str:
        makers: list[Callable[[int], str]] = [
            self.show,
            self.show,
            self.show,
            self.printf,
            self.text,
        ]
        if depth > 0:
            makers += [self.choice, self.loop, self.with_, self.declare, self.include]
        return self.r.choice(makers)(depth)

    def open(self) -> str:
        return self.pick("{{", "{{", "{{", "{{- ", "{{ ")

    def close(self) -> str:
        return self.pick("}}", "}}", "}}", " -}}", " }}")

    def action(self, inner: str) -> str:
        return f"{self.open()}{inner}{self.close()}"

    def text(self, depth: int) -> str:
        del depth
        return self.pick(
            " ",
            "\n",
            "  text  ",
            "a: b\n",
            "{ }",
            "%",
            '"',
            "\t- ",
            "{{/* note */}}",
            " {{- /* trim */ -}} ",
        )

    def show(self, depth: int) -> str:
        kind = self.pick("text", "int", "long", "real", "bool", "list", "map", "any")
        return self.action(self.expr(kind, depth))

    def printf(self, depth: int) -> str:
        verbs, args = [], []
        for _ in range(self.r.randint(1, 4)):
            kind = self.pick("text", "int", "long", "real", "bool", "list", "map", "any")
            flags = (
                self.pick("", "", "", "", "+", "-", "0", " ", "-")
                if kind in ("int", "long", "real")
                else self.pick("", "", "-")
            )
            width = self.pick("", "", "", "5", "12")
            precision = self.pick("", "", "", ".2", ".0", ".5") if kind in ("real", "text") else ""
            good = {
                "text": "svq",
                "int": "dvxXobcqU",
                "long": "dvxXob",
                "real": "vfgeEF",
                "bool": "tv",
            }.get(kind, "vds")
            verb = self.r.choice(good) if self.r.random() < 0.9 else self.r.choice("vdsqxtfeTz")
            verbs.append(f"%{flags}{width}{precision}{verb}")
            args.append(self.expr(kind, depth - 1))
        if self.r.random() < 0.05:
            verbs.append(self.pick("%d", "%!", "%%", "%[1]v", "%[9]d", "%*d"))
        return self.action(f'printf "{self.pick(" ", "|", ", ").join(verbs)}" {" ".join(args)}')

    def body(self, depth: int) -> str:
        kept = list(self.variables)
        text = "".join(self.node(depth - 1) for _ in range(self.r.randint(0, 2)))
        self.variables = kept
        return text

    def choice(self, depth: int) -> str:
        text = self.action(f"if {self.condition(depth)}") + self.body(depth)
        for _ in range(self.r.choice((0, 0, 1, 2))):
            text += self.action(f"else if {self.condition(depth)}") + self.body(depth)
        if self.r.random() < 0.6:
            text += self.action("else") + self.body(depth)
        return text + self.action("end")

    def condition(self, depth: int) -> str:
        return self.expr(self.pick("bool", "bool", "bool", "any", "text", "list"), depth - 1)

    def with_(self, depth: int) -> str:
        value = self.expr(self.pick("map", "text", "list", "any"), depth - 1)
        text = self.action(f"with {value}") + self.pick(
            "{{.}}", "{{$.nuon.s}}", "{{. | toJson}}", "w"
        )
        if self.r.random() < 0.5:
            text += self.action("else") + "none"
        return text + self.action("end")

    def loop(self, depth: int) -> str:
        kind = self.pick("list", "list", "map")
        source = self.expr(kind, depth - 1)
        names = self.pick("", "$i, $v := ", "$v := ")
        body = {"": "{{.}};", "$i, $v := ": "{{$i}}={{$v}};", "$v := ": "{{$v}},"}[names]
        if self.r.random() < 0.3:
            body += self.pick(
                "{{break}}", "{{continue}}never", '{{if eq (print .) "b"}}{{continue}}{{end}}!'
            )
        body += self.pick("", "", "{{$.nuon.n}}")
        text = self.action(f"range {names}{source}") + body
        if self.r.random() < 0.4:
            text += self.action("else") + "empty"
        return text + self.action("end")

    def declare(self, depth: int) -> str:
        name = f"$x{len(self.variables)}"
        kind = self.pick("text", "int", "list", "map", "any")
        text = f"{{{{{name} := {self.expr(kind, depth - 1)}}}}}"
        self.variables.append(name)
        if self.r.random() < 0.4:
            text += f"{{{{if true}}}}{{{{{name} = {self.expr(kind, depth - 2)}}}}}{{{{end}}}}"
        return text + f"{{{{{name}}}}}"

    def include(self, depth: int) -> str:
        name = f"part{self.number}x{len(self.parts)}"
        self.parts.append(
            f'{{{{define "{name}"}}}}[{self.pick("{{.}}", "{{$}}", "{{print .}}")}]{{{{end}}}}'
        )
        return self.action(f'template "{name}" {self.expr("any", depth - 1)}')


def make_cases(seed: int, count: int, *, wrong: float = 0.02) -> list[Case]:
    return [Generator(seed, number, wrong).case() for number in range(count)]
