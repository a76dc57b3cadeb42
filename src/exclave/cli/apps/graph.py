"""The component graph of an app directory as a tree, for Graphviz, for Mermaid, as JSON."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from exclave.appconfig.graph import Graph, Reason
from exclave.appconfig.read_app import CheckedApp


def describe(reading: CheckedApp, inputs: Sequence[str]) -> dict[str, object]:
    """Return the graph as JSON."""
    graph = reading.graph
    document: dict[str, object] = {
        "app": reading.app.name,
        "components": [{"name": name, "type": graph.types[name]} for name in graph.needs],
        "edges": [
            {"from": name, "to": need, "reasons": sorted(graph.reasons[name, need])}
            for name, needs in graph.needs.items()
            for need in needs
        ],
        "order": [list(names) for names in graph.groups()],
        "teardown": list(graph.teardown_order()),
    }
    if inputs:
        touched = graph.touched_by(inputs)
        document["touched"] = {"sandbox": touched.sandbox, "components": list(touched.components)}
    return document


def draw_tree(graph: Graph, inputs: Sequence[str]) -> str:
    """Return the graph as a tree: each component once, below the last component it needs."""
    marked = set(graph.touched_by(inputs).components) if inputs else set[str]()
    order = {name: index for index, name in enumerate(graph.order())}
    below: dict[str, list[str]] = {}
    for name in order:
        needs = sorted(graph.needs[name], key=order.__getitem__)
        below.setdefault(needs[-1] if needs else "", []).append(name)
    lines: list[str] = []
    todo = [(name, "", "") for name in reversed(below.get("", []))]
    while todo:
        name, branch, indent = todo.pop()
        lines.append(f"{branch}{_draw_component(graph, name, order, marked)}")
        children = below.get(name, [])
        for child in reversed(children):
            last = child == children[-1]
            stem = f"{indent}{'└─ ' if last else '├─ '}"
            todo.append((child, stem, f"{indent}{'   ' if last else '│  '}"))
    lines += [f"{name}  ! on a cycle" for name in graph.needs if name not in order]
    if inputs and graph.touched_by(inputs).sandbox:
        lines.insert(0, "* sandbox")
    return "".join(f"{line}\n" for line in lines)


def draw_dot(graph: Graph, inputs: Sequence[str]) -> str:
    """Return the graph for Graphviz; implied dependencies are dashed."""
    marked = set(graph.touched_by(inputs).components) if inputs else set[str]()
    lines = ["digraph app {", "  rankdir=LR;", "  node [shape=box];"]
    for name in graph.needs:
        style = " style=bold" if name in marked else ""
        lines.append(f'  "{_quote(name)}" [label="{_quote(name)}\\n{graph.types[name]}"{style}];')
    for name, need in _edges(graph):
        style = "" if Reason.EXPLICIT in graph.reasons[name, need] else " [style=dashed]"
        lines.append(f'  "{_quote(need)}" -> "{_quote(name)}"{style};')
    return "\n".join([*lines, "}", ""])


def draw_mermaid(graph: Graph, inputs: Sequence[str]) -> str:
    """Return the graph for Mermaid; implied dependencies are dotted."""
    marked = set(graph.touched_by(inputs).components) if inputs else set[str]()
    ids = {name: f"c{index}" for index, name in enumerate(graph.needs)}
    lines = ["flowchart LR"]
    lines += [f'  {ids[name]}["{_quote(name)}<br/>{graph.types[name]}"]' for name in graph.needs]
    for name, need in _edges(graph):
        arrow = "-->" if Reason.EXPLICIT in graph.reasons[name, need] else "-.->"
        lines.append(f"  {ids[need]} {arrow} {ids[name]}")
    lines += [f"  style {ids[name]} stroke-width:3px" for name in ids if name in marked]
    return "\n".join([*lines, ""])


FORMS: Mapping[str, Callable[[Graph, Sequence[str]], str]] = {
    "text": draw_tree,
    "dot": draw_dot,
    "mermaid": draw_mermaid,
}


def _draw_component(
    graph: Graph, name: str, order: Mapping[str, int], marked: Iterable[str]
) -> str:
    needs = sorted(graph.needs[name], key=order.__getitem__)
    also = f" · also needs {', '.join(needs[:-1])}" if len(needs) > 1 else ""
    star = "* " if name in marked else ""
    return f"{star}{name}  {graph.types[name]}{also}"


def _edges(graph: Graph) -> list[tuple[str, str]]:
    return [(name, need) for name, needs in graph.needs.items() for need in needs]


def _quote(text: str) -> str:
    return (
        "".join(character for character in text if character.isprintable())
        .replace('"', "'")
        .replace("\\", "/")
    )
