"""The language of `helm --set`, compared with Helm itself on generated expressions."""

import base64
import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from exclave.base.json_values import Json
from exclave.runner.helm.set_language import SetRefused, set_values
from tests.support.kubernetes_tools import need_helm

KEYS = ("a", "b", "cd", r"x\.y", r"\,", "k-1", "é", r"\[", "A_b")
VALUES = (
    *("1", "0", "00", "01", "-1", "+5", "-0", "true", "FALSE", "Null", "null", "1.5", "1e3"),
    *("abc", r"a\,b", "{a,b}", "{}", "{1,true,x}", "[]", "a=b", "}", "x y", '"q"', "a.b"),
    *("9223372036854775808", "-9223372036854775808", "0x10", " {x}", r"\{x}", "((exclave:x))"),
)
BATCH = 50
EXPRESSIONS = 2000


def make_key(rng: random.Random) -> str:
    key = rng.choice(KEYS)
    while rng.random() < 0.3:
        key += f"[{rng.choice((0, 0, 1, 2))}]"
    return f"{key}.{make_key(rng)}" if rng.random() < 0.4 else key


def make_pair(rng: random.Random) -> str:
    key = make_key(rng)
    # An empty value at the end of a list item is lost by Helm, so it is left out here.
    value = "" if "[" not in key and rng.random() < 0.05 else rng.choice(VALUES)
    return f"{key}={value}"


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chart that prints its values."""
    folder = tmp_path_factory.mktemp("chart")
    (folder / "templates").mkdir()
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 1.0.0\n")
    (folder / "templates/values.yaml").write_text("v: {{ .Values | toJson | b64enc }}")
    return folder


def ask_helm(chart: Path, expressions: Sequence[str]) -> dict[str, Json] | None:
    """Return the values that Helm makes of expressions; None if it refuses them."""
    argv = [str(need_helm()), "template", "x", str(chart)]
    for expression in expressions:
        argv += ["--set", expression]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={"HOME": "/none"})
    if done.returncode:
        return None
    values = json.loads(base64.b64decode(done.stdout.split("v: ")[1]))
    assert isinstance(values, dict)
    return values


def test_generated_expressions_mean_what_they_mean_to_helm(chart: Path) -> None:
    rng = random.Random(14)
    for _ in range(EXPRESSIONS // BATCH):
        values: dict[str, Json] = {}
        batch: list[str] = []
        for number in range(BATCH):
            pairs = [f"x{number}.{make_pair(rng)}" for _ in range(rng.choice((1, 1, 2)))]
            try:
                set_values(values, ",".join(pairs))
            except SetRefused:
                assert ask_helm(chart, [",".join(pairs)]) is None, pairs
                values.pop(f"x{number}", None)
            else:
                batch.append(",".join(pairs))

        assert values == ask_helm(chart, batch)


@pytest.mark.parametrize(
    "expression",
    ["a", "a.b", "a,b=1", "a[x]=1", "a[-1]=1", "a[0]b=1", "a={x", "a=1,a.b=2", "a=1,a[0]=2"],
)
def test_what_helm_refuses_is_refused(chart: Path, expression: str) -> None:
    with pytest.raises(SetRefused):
        set_values({}, expression)

    assert ask_helm(chart, [expression]) is None


def test_single_values_change_lists_of_files() -> None:
    values: dict[str, Json] = {"hosts": ["a", "b"], "image": {"tag": "1"}}

    set_values(values, "hosts[1]=c,image.name=web")

    assert values == {"hosts": ["a", "c"], "image": {"tag": "1", "name": "web"}}
