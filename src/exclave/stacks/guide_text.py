"""A guide as a page for the customer."""

from collections.abc import Iterator

from exclave.stacks.base import Guide, Step
from exclave.stacks.markdown import write_block, write_text
from exclave.stacks.model import StackModel

INSTRUCTIONS = "INSTRUCTIONS.md"


def write_instructions(model: StackModel, guide: Guide, *, preview: bool = False) -> str:
    """Return the page; a `preview` says that no runner will come of these files."""
    return "\n".join(_write_parts(model, guide, preview=preview))


def _write_parts(model: StackModel, guide: Guide, *, preview: bool) -> Iterator[str]:
    yield f"# {write_text(model.app)} in your account\n"
    if model.description:
        yield f"{write_text(model.description)}\n"
    yield f"{guide.summary}\n"
    if preview:
        yield (
            "> **Preview.** These files were made from the app's directory alone. They are what an"
            " install gets, but no control plane knows this install: a runner that starts from"
            " them is refused.\n"
        )
    if guide.warning:
        yield f"> **Careful:** {guide.warning}\n"
    yield "What the runner may do in your account is in `PERMISSIONS.md`.\n"
    for step in guide.steps:
        yield from _write_step(step)


def _write_step(step: Step) -> Iterator[str]:
    yield f"## {write_text(step.title)}\n"
    if step.text:
        yield f"{step.text}\n"
    for link in step.links:
        yield f"- [{write_text(link.title)}](<{link.url.replace('>', '%3E')}>)\n"
    if step.commands:
        yield write_block(step.commands)
