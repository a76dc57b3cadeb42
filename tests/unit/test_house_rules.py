"""Rules of the house that no linter knows."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "exclave"

CLOCKS = {
    ("time", "time"), ("time", "monotonic"), ("time", "sleep"), ("datetime", "now"),
    ("datetime", "utcnow"), ("datetime", "today"), ("uuid", "uuid4"), ("uuid", "uuid1"),
    ("os", "urandom"), ("secrets", "token_bytes"), ("secrets", "randbits"),
    ("secrets", "token_hex"), ("random", "random"), ("random", "randint"),
}  # fmt: skip
BOOT_SCRIPT = {
    "stacks/boot/script.py",
    *(path.relative_to(SOURCE).as_posix() for path in SOURCE.glob("stacks/*/boot_calls.py")),
}
"""The parts of a script that runs without us, on a machine that has nothing else yet."""
STARTER = "runner/cloud/starter.py"
"""It stands alone too: it starts whatever version of us is there."""
ALLOWED = {"base/clock.py", "base/ids.py", STARTER, *BOOT_SCRIPT}


def modules(folder: Path = SOURCE) -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(folder.rglob("*.py")):
        yield file.relative_to(SOURCE).as_posix(), ast.parse(file.read_text())


def test_clocks_and_randomness_are_read_in_base_only() -> None:
    found = [
        f"{name}:{node.lineno} {node.value.id}.{node.attr}"
        for name, tree in modules()
        if name not in ALLOWED
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in CLOCKS
    ]

    assert found == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [name for name, tree in modules() if not ast.get_docstring(tree)]

    assert silent == []


OF_ALL_ORGS = {
    # Found before anybody has proven who they are, by a secret or a unique id.
    "find_user", "find_enrolment", "find_runner_anywhere", "find_identity", "find_org_named",
    "find_code", "find_view", "find_org_of",
    "find_registry_token",
    # Asked by the operator of the instance, on its machine.
    "has_orgs", "find_token_anywhere",
    # Nonces of attestation: used before anybody has proven anything.
    "spend_nonce", "drop_expired_nonces",
    # The background work of the instance itself.
    "drop_expired_registry_tokens", "find_due", "read_next", "claim_tick",
    "list_stale_offers", "list_silent", "list_unended", "list_due", "next_due", "list_unmoved",
    "drop_expired", "drop_old_replies", "count_by_state", "forget_generations", "find_unmerged", "block_wanted_lanes",
    "list_all_usage",
    # The instance's own rows.
    "read_generation", "add_cluster", "raise_generation", "lock_chain", "list_keys", "add_key",
}  # fmt: skip
INFRASTRUCTURE = {"backup", "database", "group_commit", "hub", "listener", "metrics", "migrate", "schema", "sessions",
                  "statements", "types"}  # fmt: skip
QUERIES = sorted(
    file.stem
    for file in (SOURCE / "storage").glob("*.py")
    if file.stem not in INFRASTRUCTURE | {"__init__"} and not file.stem.startswith("tables")
)


def test_every_query_takes_the_org() -> None:
    """A function that opens a table takes the tenant, or its rows and keys carry it."""
    carriers = {"org", "key", "keys", "row", "rows", "new", "changed", "account", "used"}
    loose = []
    for noun in QUERIES:
        tree = ast.parse((SOURCE / "storage" / f"{noun}.py").read_text())
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            names = {arg.arg for arg in [*node.args.args, *node.args.kwonlyargs]}
            if "tx" in names and not names & carriers and node.name not in OF_ALL_ORGS:
                loose.append(f"{noun}.{node.name}")

    assert loose == []


def test_nothing_runs_through_a_shell() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, tree in modules()
        for node in ast.walk(tree)
        if (
            isinstance(node, ast.keyword)
            and node.arg == "shell"
            and isinstance(node.value, ast.Constant)
            and node.value.value
        )
        or (
            isinstance(node, ast.Attribute)
            and node.attr in {"create_subprocess_shell", "system"}
            and isinstance(node.value, ast.Name)
            and node.value.id in {"os", "asyncio"}
        )
    ]

    assert found == []


TERMINAL = "cli/terminal.py"
"""The one module that prints: it cleans what others wrote."""
PRINTING = {
    ("click", "echo"), ("click", "secho"), ("click", "style"), ("click", "prompt"),
    ("click", "confirm"), ("click", "echo_via_pager"), ("click", "progressbar"),
    ("click", "get_text_stream"), ("click", "get_binary_stream"), ("click", "pause"),
    ("click", "edit"), ("getpass", "getpass"), ("traceback", "print_exc"),
    ("traceback", "print_exception"), ("traceback", "print_stack"), ("pprint", "pprint"),
    ("error", "show"),
}  # fmt: skip
STREAMS = {
    "base/logs.py",  # JSON lines, written by `dump_json`.
    "stacks/local_script_template.py",  # A script that runs without us; it cleans by itself.
    *BOOT_SCRIPT,  # Its console is read by nobody but the customer.
}
RICH = {"cli/workflows/screens.py"}
"""Draws a screen that moves, of cleaned text only."""


def find_printing(tree: ast.Module) -> Iterator[ast.AST]:
    """Find what could write to a terminal: calls, streams, a forged `Styled`, Rich."""
    asked = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"isatty", "readline", "read"}
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="print" | "input" | "pprint" | "Styled")):
                yield node
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if (owner, name) in PRINTING:
                yield node
            case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr") if (
                node not in asked
            ):
                yield node
            case ast.ImportFrom(module="click" | "sys" | "getpass"):
                yield node


def test_only_one_module_prints() -> None:
    found = [
        f"{name}:{getattr(node, 'lineno', 0)}"
        for name, tree in modules()
        if name not in STREAMS | {TERMINAL}
        for node in find_printing(tree)
    ]

    assert found == []


def test_only_the_moving_screen_is_drawn_by_rich() -> None:
    found = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rich")
        or (isinstance(node, ast.Import) and any(one.name.startswith("rich") for one in node.names))
    }

    assert found == RICH


def test_the_rule_about_printing_finds_what_it_should() -> None:
    lines = [
        "print(1)",
        "click.echo(1)",
        "sys.stdout.write(1)",
        "f(file=sys.stderr)",
        "Styled(1)",
        "from click import echo",
        "getpass.getpass(1)",
        "x = click.style(1)",
    ]

    assert [line for line in lines if not list(find_printing(ast.parse(line)))] == []
    assert not list(find_printing(ast.parse("sys.stdout.isatty()")))


def test_the_folders_of_tests_are_those_of_the_source() -> None:
    tests = Path(__file__).parents[1]
    not_rooms = {
        "unit/docs",
        "unit/bench",
        "integration/support",
    }  # what is tested there lies outside of the source
    strange = [
        folder.relative_to(tests).as_posix()
        for kind in ("unit", "integration")
        for folder in sorted((tests / kind).rglob("*"))
        if any(folder.glob("*.py"))
        and folder.relative_to(tests).as_posix() not in not_rooms
        and not (SOURCE / folder.relative_to(tests / kind)).is_dir()
    ]

    assert strange == []


DOCUMENT_EDGES = {
    # A script that runs without this package; the control plane fills in its JSON parameters.
    "stacks/local_script_template.py",
    # The same on a machine in a cloud.
    *BOOT_SCRIPT,
    # The parameters of SQL statements, whose types are those of the columns.
    "storage/engine/statements.py",
    # Models of Stacks as they are stored: the fields of dataclasses, read by their names.
    "control/stack_versions/stored_models.py",
    # Rows that are changed before they are sent.
    "storage/engine/unflushed_rows.py",
}
"""Modules whose mappings have values of any type."""


def is_untyped_document(node: ast.AST) -> bool:
    """Return whether a type is a mapping of names to anything."""
    match node:
        case ast.Subscript(
            value=ast.Name(id="Mapping" | "MutableMapping" | "dict"),
            slice=ast.Tuple(elts=[ast.Name(id="str"), ast.Name(id="Any")]),
        ):
            return True
        case _:
            return False


def is_untyped_row(node: ast.AST) -> bool:
    """Return whether a name is that of a row of unknown columns."""
    return isinstance(node, ast.Name) and node.id == "AnyRow"


def count_nodes(tree: ast.Module, matches: Callable[[ast.AST], bool]) -> int:
    return sum(map(matches, ast.walk(tree)))


def test_documents_have_types() -> None:
    """A document of known shape has a class; one of unknown shape is a `JsonObject`."""
    counts = {name: count_nodes(tree, is_untyped_document) for name, tree in modules()}

    assert {name for name, count in counts.items() if count} == DOCUMENT_EDGES


def test_rows_of_unknown_columns_stay_in_storage() -> None:
    found = [
        name
        for name, tree in modules()
        if not name.startswith("storage/") and count_nodes(tree, is_untyped_row)
    ]

    assert found == []


def find_untyped_annotations(tree: ast.Module) -> Iterator[ast.AST]:
    """Find arguments, values and results that are annotated as anything."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.arg(annotation=ast.Name(id="Any"))
                | ast.AnnAssign(annotation=ast.Name(id="Any"))
                | ast.FunctionDef(returns=ast.Name(id="Any"))
                | ast.AsyncFunctionDef(returns=ast.Name(id="Any"))
            ):
                yield node


def test_decisions_are_made_about_typed_values() -> None:
    found = [
        f"{name}:{getattr(node, 'lineno', 0)}"
        for room in ("domain", "flow")
        for name, tree in modules(SOURCE / room)
        for node in find_untyped_annotations(tree)
    ]

    assert found == []


def test_the_rules_about_types_find_what_they_should() -> None:
    documents = [
        "x: Mapping[str, Any]",
        "def f() -> dict[str, Any]: ...",
        "T = list[dict[str, Any]]",
    ]
    typed = ["x: Mapping[str, Json]", "x: dict[str, object]", "x: Callable[..., Any]"]
    values = ["x: Any = 1", "def f(x: Any): ...", "async def f() -> Any: ..."]

    assert [count_nodes(ast.parse(text), is_untyped_document) for text in documents] == [1, 1, 1]
    assert [count_nodes(ast.parse(text), is_untyped_document) for text in typed] == [0, 0, 0]
    assert count_nodes(ast.parse("def f(row: AnyRow) -> AnyRow: ..."), is_untyped_row) == 2
    assert [text for text in values if not list(find_untyped_annotations(ast.parse(text)))] == []
    assert not list(find_untyped_annotations(ast.parse("def f(x: str) -> int: ...")))


DEFINITIONS = "control/definitions.py"
"""The one module of `control` that reads the parts of a config, always as their typed classes."""
DURATION = re.compile(r"[0-9]+(ms|s|m|h)")


def find_raw_parts(tree: ast.Module) -> Iterator[ast.AST]:
    """Find queries for parts of a config, whose values are dictionaries without defaults."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="configs"), attr="find_part" | "list_parts"):
                yield node
            case ast.ImportFrom(module="exclave.storage.configs"):
                yield node


def find_durations(tree: ast.Module) -> Iterator[ast.AST]:
    """Find durations that are written as text, as in a definition."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if DURATION.fullmatch(text):
                yield node


def test_parts_of_a_config_are_read_in_one_module() -> None:
    found = [
        f"{name}:{getattr(node, 'lineno', 0)}"
        for name, tree in modules(SOURCE / "control")
        if name != DEFINITIONS
        for node in find_raw_parts(tree)
    ]

    assert found == []


def test_default_durations_are_written_in_the_definitions_only() -> None:
    found = [
        f"{name}:{getattr(node, 'lineno', 0)}"
        for room in ("control", "jobspec", "flow", "domain", "storage", "api", "runner", "wire")
        for name, tree in modules(SOURCE / room)
        for node in find_durations(tree)
    ]

    assert found == []


def test_the_rules_about_parts_and_durations_find_what_they_should() -> None:
    raw = ["configs.find_part(tx, org, config, 'action')", "x = configs.list_parts(tx)"]
    texts = ['x = value.get("timeout") or "5m"', 'f(default="90s")']

    assert [line for line in raw if not list(find_raw_parts(ast.parse(line)))] == []
    assert [line for line in texts if not list(find_durations(ast.parse(line)))] == []
    assert not list(find_durations(ast.parse('"""Wait 5m."""\nx = "5 m"')))
