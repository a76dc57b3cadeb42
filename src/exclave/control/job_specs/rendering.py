"""Render templates without blocking the event loop.

Inside of a transaction, which runs on the event loop, only a little is rendered: what all its texts
may cost together is counted. Whatever does not fit is rendered by a worker, outside; then the
transaction is run once more and finds it. Its results are kept under the name of the values that
they were made of, so that a newer state is never answered with an older text.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, TypeVar

from exclave.appconfig.diagnostics.sources import WHOLE
from exclave.appconfig.templates import Fault, is_template, make_budget, render_text
from exclave.base.errors import Conflict, Kind, Problem
from exclave.control.deps import Deps
from exclave.control.workers.pool import TookTooLong, TookTooMuch, WorkerDied
from exclave.control.workers.render_texts import Wanted, render_each
from exclave.storage.engine.database import Tx

T = TypeVar("T")

INLINE_STEPS = 3_000
"""The template steps that one transaction may run: about ten milliseconds."""
_INLINE_CHARS = 64 * 1024
STEPS = 1_000_000
"""The template steps that one request, or one step's job, may run."""
SECONDS = 5.0
_ROUNDS = 5


class NotRendered(Problem):
    """A text has to be rendered outside of this transaction first."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "not_rendered"
    hint: ClassVar = "Try again in a moment."


class Renderings:
    """The rendered texts of one request, and those still to render."""

    def __init__(self) -> None:
        self.wanted: dict[tuple[str, str], Wanted] = {}
        self._done: dict[tuple[str, str], str | Fault] = {}
        self._left = STEPS
        self._made: dict[str, str] = {}

    def make_once(self, name: str, make: Callable[[], str]) -> str:
        """Make something that stays the same however often the transaction is run."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def render(
        self,
        tx: Tx,
        text: str,
        values: Mapping[str, object],
        name: str,
        now: datetime | None = None,
    ) -> str | Fault:
        """Render a text, or note that it is to be rendered outside; `name` tells values apart.

        As soon as something is noted the transaction will be undone, so the rest is noted too.
        """
        if not is_template(text, tuple(values)):
            return text
        result = self._done.get((name, text))
        if result is None and not self.wanted:
            result = render_inline(tx, text, values, now)
        if result is None:
            self.wanted[name, text] = Wanted(text, values, now)
            return ""
        return result

    async def fetch(self, deps: Deps, org: str) -> None:
        """Render the missing texts in a worker process."""
        wanted, self.wanted = self.wanted, {}
        done = await self._ask(deps, org, list(wanted.values()))
        self._done.update(zip(wanted, done, strict=True))

    async def _ask(self, deps: Deps, org: str, wanted: list[Wanted]) -> Sequence[str | Fault]:
        try:
            try:
                done, self._left = await deps.workers.run(
                    org, render_each, wanted, self._left, seconds=SECONDS
                )
            except WorkerDied:
                done, self._left = await deps.workers.run(
                    org, render_each, wanted, self._left, seconds=SECONDS
                )
        except (TookTooLong, TookTooMuch, WorkerDied) as problem:
            # Once more would take as long: this is the answer.
            return [Fault(problem.message, problem.advice, WHOLE)] * len(wanted)
        return done


def render_inline(
    tx: Tx, text: str, values: Mapping[str, object], now: datetime | None = None
) -> str | Fault | None:
    """Render within what is left for this transaction; None if that is not enough."""
    left = INLINE_STEPS - tx.effort
    if left <= 0 or len(text) > _INLINE_CHARS:
        return None
    budget = make_budget(left)
    done = render_text(text, values, now, budget)
    tx.effort += left - max(0, budget.left)
    return None if budget.left < 0 else done


async def write_rendered(
    deps: Deps, org: str, change: Callable[[Tx, Renderings], T], *, key: str = ""
) -> T:
    """Run a write that renders; it is run again with what had to be rendered outside of it."""
    return await _try(
        deps, org, lambda work: deps.db.write(lambda tx: _attempt(tx, change, work), key=key)
    )


async def read_rendered(deps: Deps, org: str, query: Callable[[Tx, Renderings], T]) -> T:
    """Run a read that renders, in the same way."""
    return await _try(deps, org, lambda work: deps.db.read(lambda tx: _attempt(tx, query, work)))


async def _try(deps: Deps, org: str, run: Callable[[Renderings], Awaitable[T]]) -> T:
    texts = Renderings()
    for _ in range(_ROUNDS):
        try:
            return await run(texts)
        except NotRendered:
            await texts.fetch(deps, org)
    raise Conflict("the values of the templates keep changing", hint="Try again.")


def _attempt(tx: Tx, change: Callable[[Tx, Renderings], T], texts: Renderings) -> T:
    try:
        outcome = change(tx, texts)
    except Problem:
        if not texts.wanted:  # else it may come from a text that is not there yet
            raise
    if texts.wanted:
        raise NotRendered("texts have to be rendered first")
    return outcome
