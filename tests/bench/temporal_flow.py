"""The same graph as a Temporal workflow: each step waits for its signal."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from tests.bench.flows import NAMES, list_needs


@workflow.defn
class Graph:
    """Ends when every step was answered, each after the steps that it needs."""

    def __init__(self) -> None:
        self._answers: set[str] = set()
        self._done: list[str] = []

    @workflow.run
    async def run(self) -> list[str]:
        while len(self._done) < len(NAMES):
            await workflow.wait_condition(lambda: bool(self._find_ready()))
            self._done += self._find_ready()
        return self._done

    @workflow.signal
    def answer(self, step: str) -> None:
        self._answers.add(step)

    def _find_ready(self) -> list[str]:
        return [
            name
            for name in NAMES
            if name in self._answers
            and name not in self._done
            and all(need in self._done for need in list_needs(name))
        ]
