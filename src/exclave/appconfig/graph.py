"""The dependency graph of components: order, parallel groups, teardown, effects of changes."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from exclave.appconfig.checks.common import check_exists
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.uses import (
    Found,
    mentioned_components,
    mentioned_inputs,
    used_component,
    used_input,
)

_RANKS = {"container_image": 1, "docker_build": 2, "terraform_module": 3, "helm_chart": 4, "job": 5}
"""Sort order within a group: images before other types; types not listed here come first."""


class Reason(StrEnum):
    """Why one component depends on another."""

    EXPLICIT = "explicit"
    IMPLIED = "implied"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Graph:
    """The components of an app and their dependencies; only existing names occur."""

    types: Mapping[str, str]
    needs: Mapping[str, tuple[str, ...]]
    """Direct needs, sorted by name."""
    reasons: Mapping[tuple[str, str], frozenset[Reason]]
    """Why (component, need) is an edge."""
    inputs: Mapping[str, frozenset[str]]
    """The inputs that each component reads itself."""
    sandbox_inputs: frozenset[str] = frozenset()

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Return groups of components; each can run in parallel after those before it."""
        levels: dict[str, int] = {}
        for name in self.order():
            levels[name] = 1 + max((levels[need] for need in self.needs[name]), default=-1)
        count = 1 + max(levels.values(), default=-1)
        groups: list[list[str]] = [[] for _ in range(count)]
        for name in sorted(levels, key=self._rank):
            groups[levels[name]].append(name)
        return tuple(map(tuple, groups))

    def order(self) -> tuple[str, ...]:
        """Return the deploy order; components on a cycle, or behind one, are left out."""
        waiting = {name: len(needs) for name, needs in self.needs.items()}
        dependents = self._reverse()
        ready = [self._rank(name) for name, count in waiting.items() if count == 0]
        heapq.heapify(ready)
        done = []
        while ready:
            name = heapq.heappop(ready)[2]
            done.append(name)
            for after in dependents[name]:
                waiting[after] -= 1
                if waiting[after] == 0:
                    heapq.heappush(ready, self._rank(after))
        return tuple(done)

    def teardown_order(self) -> tuple[str, ...]:
        """Return the order of removal."""
        return self.order()[::-1]

    def with_dependents(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return components and everything that depends on them, in deploy order."""
        dependents, todo, seen = self._reverse(), list(names), set[str]()
        while todo:
            name = todo.pop()
            if name in self.needs and name not in seen:
                seen.add(name)
                todo += dependents[name]
        return tuple(name for name in self.order() if name in seen)

    def touched_by(self, inputs: Iterable[str]) -> "Touched":
        """Return what a change of inputs affects."""
        changed = frozenset(inputs)
        direct = [name for name, used in self.inputs.items() if used & changed]
        return Touched(
            sandbox=bool(self.sandbox_inputs & changed), components=self.with_dependents(direct)
        )

    def _rank(self, name: str) -> tuple[int, int, str]:
        return len(self.needs[name]), _RANKS.get(self.types[name], 0), name

    def _reverse(self) -> dict[str, list[str]]:
        dependents: dict[str, list[str]] = {name: [] for name in self.needs}
        for name, needs in self.needs.items():
            for need in needs:
                dependents[need].append(name)
        return dependents


@dataclass(frozen=True, slots=True)
class Touched:
    """What a change of inputs affects; a sandbox is reprovisioned with everything on it."""

    sandbox: bool
    components: tuple[str, ...]


def build_graph(app: App, uses: Sequence[Found], report: Report) -> Graph:
    """Return the graph; report unknown names, self-references and cycles."""
    builder = _Builder(app, report)
    for entry in app.entries_of(Component):
        builder.add_component(entry)
    for use in uses:
        name = used_component(use.use)
        if name and isinstance(use.entry.value, Component):
            builder.add_edge(use.entry.name, name, Reason.IMPLIED, use.place)
    graph = builder.build(uses)
    for cycle in find_cycles(graph.needs):
        place = builder.places.get((cycle[0], cycle[1]), app.name)
        message = f"components need each other in a circle: {' → '.join(cycle)}"
        hint = "Remove one of these dependencies, or split a component in two."
        report.error(Code.DEPENDENCY_CYCLE, place, message, hint)
    check_toggles(app, graph, report)
    return graph


def check_toggles(app: App, graph: Graph, report: Report) -> None:
    """Report components that are enabled by default and depend on one that is not."""
    off = {
        component.name
        for component in app.components
        if component.toggleable and not component.default_enabled
    }
    for entry in app.entries_of(Component):
        if entry.name in off or entry.name not in graph.needs:
            continue
        for need in graph.needs[entry.name]:
            if need in off:
                message = f"`{entry.name}` needs `{need}`, which is switched off at first"
                hint = f"Write default_enabled = true in `{need}`, or make this one toggleable."
                report.warn(Code.CONFLICT, entry.place.child("dependencies"), message, hint)


def find_cycles(needs: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return one cycle per strongly connected component, from its first name back to it."""
    cycles: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in sorted(needs):
        path: dict[str, None] = {}
        todo: list[tuple[str, bool]] = [(start, False)]
        while todo:
            name, leaving = todo.pop()
            if leaving:
                done.add(path.popitem()[0])
            elif name in path:
                walked = list(path)
                cycles.append(_turn(walked[walked.index(name) :]))
            elif name not in done:
                path[name] = None
                todo.append((name, True))
                todo += [(need, False) for need in reversed(needs[name])]
    return list(dict.fromkeys(cycles))


def _turn(cycle: list[str]) -> tuple[str, ...]:
    first = cycle.index(min(cycle))
    turned = cycle[first:] + cycle[:first]
    return (*turned, turned[0])


class _Builder:
    def __init__(self, app: App, report: Report) -> None:
        self.app = app
        self.report = report
        self.types = {
            component.name: component.type for component in app.components if component.name
        }
        self.contexts = {context.name: context.component for context in app.kubernetes_contexts}
        self.reasons: dict[tuple[str, str], set[Reason]] = {}
        self.places: dict[tuple[str, str], Place] = {}

    def add_component(self, entry: Entry) -> None:
        value = entry.value
        if not isinstance(value, Component) or not value.name:
            return
        for index, need in enumerate(value.dependencies):
            place = entry.place.child("dependencies", index)
            check_exists(self.report, Code.UNKNOWN_COMPONENT, place, need, self.types)
            self.add_edge(value.name, need, Reason.EXPLICIT, place)
        for need, text in mentioned_components(entry):
            self.add_edge(value.name, need, Reason.IMPLIED, text.place)
        if value.kubernetes_context in self.contexts:
            need, place = self.contexts[value.kubernetes_context], entry.place
            self.add_edge(value.name, need, Reason.CONTEXT, place.child("kubernetes_context"))

    def add_edge(self, name: str, need: str, reason: Reason, place: Place) -> None:
        if name == need:
            message = f"component `{name}` depends on itself"
            hint = "Remove the dependency; a component cannot read its own outputs."
            self.report.error(Code.SELF_DEPENDENCY, place, message, hint)
        elif need in self.types:
            self.reasons.setdefault((name, need), set()).add(reason)
            self.places.setdefault((name, need), place)

    def build(self, uses: Sequence[Found]) -> Graph:
        needs: dict[str, list[str]] = {name: [] for name in sorted(self.types)}
        for name, need in sorted(self.reasons):
            needs[name].append(need)
        inputs = {entry.name: mentioned_inputs(entry) for entry in self.app.entries_of(Component)}
        of_sandbox: set[str] = set()
        for entry in self.app.entries_of(Sandbox):
            of_sandbox |= mentioned_inputs(entry)
        for use in uses:
            used = used_input(use.use)
            if used and isinstance(use.entry.value, Component):
                inputs.setdefault(use.entry.name, set()).add(used)
            elif used and isinstance(use.entry.value, Sandbox):
                of_sandbox.add(used)
        return Graph(
            self.types,
            {name: tuple(names) for name, names in needs.items()},
            {edge: frozenset(why) for edge, why in self.reasons.items()},
            {name: frozenset(names) for name, names in inputs.items() if name in self.types},
            frozenset(of_sandbox),
        )
