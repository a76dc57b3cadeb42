"""As many seeds as you like: `python -m tests.integration.template.fuzz --seeds 50 --start 0`.

Each seed makes templates, renders them with both engines and compares; then it breaks the same templates at random places, and
only a TemplateProblem may come out of our engine.
"""

import argparse
import random
import tempfile
from pathlib import Path

from exclave.template import Limits, TemplateProblem, find_references, parse, render
from tests.integration.template import helm
from tests.integration.template.generator import VALUES, Case, make_cases

CASES = 500
LIMITS = Limits(steps=20_000)
_DIFFERENCES = (
    "range can't iterate over",
    "error calling slice: list should be type of slice or array but string",
)
"""What helm refuses and our engine takes, as the reference of templates says."""


def compare(folder: Path, seed: int) -> int:
    """Compare the results of one seed; give how many templates were compared."""
    results: dict[int, str] = {}
    cases = make_cases(seed, CASES)
    for case in cases:
        try:
            results[case.number] = render(parse(case.text), VALUES)
        except TemplateProblem:
            continue
    good = [case for case in cases if case.number in results and not _compares_nil_list(case.text)]
    theirs = render_rest(folder, good)
    for case in good:
        if (
            case.number in theirs
            and theirs[case.number].decode(errors="replace") != results[case.number]
        ):
            message = (
                f"seed {seed}: {case.text!r}: {results[case.number]!r}, not {theirs[case.number]!r}"
            )
            raise SystemExit(message)
    return len(theirs)


def _compares_nil_list(text: str) -> bool:
    """Return whether a template compares matches with nil: Go tells nil from an empty list."""
    return "regexFindAll" in text and "nil" in text


def render_rest(folder: Path, cases: list[Case]) -> dict[int, bytes]:
    """Render with helm; leave out templates that show a known difference."""
    while True:
        try:
            return helm.render_all(folder, cases, VALUES)
        except helm.HelmFailed as failed:
            if not any(difference in str(failed) for difference in _DIFFERENCES):
                raise SystemExit(str(failed)) from failed
            cases = [case for case in cases if case.number != failed.number]


def break_apart(seed: int) -> None:
    """Cut and swap pieces of good templates; anything but a TemplateProblem is a bug."""
    chance = random.Random(seed)
    for case in make_cases(seed, CASES):
        text = case.text
        for _ in range(chance.randint(1, 4)):
            start, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
            text = chance.choice(
                (text[:start] + text[end:], text[end:] + text[:start], text[:end] + text[start:])
            )
        try:
            template = parse(text)
            find_references(template)
            render(template, VALUES, LIMITS)
        except TemplateProblem:
            continue


def main() -> None:
    """Run the seeds that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--start", type=int, default=0)
    args = parser.parse_args()
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.start, args.start + args.seeds):
            compared += compare(Path(folder), seed)
            break_apart(seed)
    print(f"{compared} templates are the same in Go; {args.seeds * CASES} broken ones did no harm")


if __name__ == "__main__":
    main()
