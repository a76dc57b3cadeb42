"""Watches every committed change of jobs, executions and lanes (I1, I2)."""

import json
import sqlite3
from collections.abc import Callable

from sqlalchemy import Connection, Engine, event

from tests.faults.sim.ledger import Cloud, Ledger

Note = tuple[str, ...]

_FINAL = frozenset({"succeeded", "failed", "cancelled", "lost"})
_TRIGGERS = (
    """CREATE TRIGGER sim_job AFTER UPDATE ON jobs
       WHEN OLD.state IS NOT NEW.state OR OLD.outputs IS NOT NEW.outputs
         OR OLD.reason IS NOT NEW.reason OR OLD.attempts IS NOT NEW.attempts
       BEGIN SELECT sim_note('job', NEW.id, OLD.state, NEW.state, NEW.reason, NEW.mutating,
                             NEW.queue_id, NEW.lanes); END""",
    """CREATE TRIGGER sim_held AFTER INSERT ON execution_lanes
       BEGIN SELECT sim_note('held', NEW.execution_id, NEW.queue_id || ' ' || NEW.lane,
                             NEW.epoch); END""",
    """CREATE TRIGGER sim_write AFTER UPDATE ON executions
       WHEN OLD.state IS NOT NEW.state OR OLD.renewed_at IS NOT NEW.renewed_at
         OR OLD.log_bytes IS NOT NEW.log_bytes OR OLD.result_digest IS NOT NEW.result_digest
       BEGIN SELECT sim_note('write', NEW.id, NEW.epoch, OLD.state, NEW.state); END""",
    """CREATE TRIGGER sim_undead AFTER UPDATE ON executions WHEN OLD.state = 'ended'
         AND (NEW.state != 'ended' OR OLD.result_digest IS NOT NEW.result_digest)
       BEGIN SELECT sim_note('undead', NEW.id); END""",
    """CREATE TRIGGER sim_lane AFTER UPDATE ON lanes WHEN OLD.epoch IS NOT NEW.epoch
       BEGIN SELECT sim_note('lane', NEW.queue_id || ' ' || NEW.name, OLD.epoch,
                             NEW.epoch); END""",
)


class Watcher:
    """Is told of each changed row by triggers, and believes it when the transaction commits."""

    def __init__(self, ledger: Ledger, cloud: Cloud) -> None:
        self._ledger = ledger
        self._cloud = cloud
        self._pending: list[Note] = []
        self._ended: dict[str, str] = {}
        self._held: dict[str, dict[str, int]] = {}
        self._newest: dict[str, int] = {}

    def attach(self, engine: Engine, raw: sqlite3.Connection) -> None:
        """Put the triggers in place."""
        raw.create_function("sim_note", -1, self._note)
        for trigger in _TRIGGERS:
            raw.execute(trigger)
        event.listen(engine, "commit", self._commit)
        event.listen(engine, "rollback", self._roll_back)

    def _note(self, *words: object) -> None:
        self._pending.append(tuple(map(str, words)))

    def _roll_back(self, connection: Connection) -> None:
        self._pending.clear()

    def _commit(self, connection: Connection) -> None:
        notes, self._pending = self._pending, []
        kinds: dict[str, Callable[..., None]] = {
            "job": self._see_job,
            "held": self._see_held,
            "write": self._see_write,
            "undead": self._see_undead,
            "lane": self._see_lane,
        }
        for kind, *words in notes:
            kinds[kind](*words)

    def _see_job(self, job: str, before: str, after: str, reason: str, *place: str) -> None:
        self._ledger.trace("job", job, before, after, reason)
        if before in _FINAL:
            self._ledger.report("I2", "ended job changed", job, before, after)
        if after in _FINAL:
            if job in self._ended:
                self._ledger.report("I2", "job ended twice", job, self._ended[job], after)
            self._ended[job] = after
            self._ledger.counts[f"jobs_{after}"] += 1
        if after == "cancelled":
            self._cloud.cancelled[job] = None
        mutating, queue, lanes = place
        if after == "lost" and mutating == "1":
            for lane in json.loads(lanes):
                self._cloud.unsure[queue, lane] = frozenset(self._cloud.permitted)

    def _see_undead(self, execution: str) -> None:
        self._ledger.report("I2", "ended execution changed", execution)

    def _see_held(self, execution: str, lane: str, epoch: str) -> None:
        self._held.setdefault(execution, {})[lane] = int(epoch)

    def _see_write(self, execution: str, epoch: str, before: str, after: str) -> None:
        self._ledger.trace("write", execution, before, after)
        if before == "offered" and after == "running":
            self._cloud.permitted[execution] = None
        for lane, held in self._held.get(execution, {}).items():
            if held < self._newest.get(lane, 0):
                self._ledger.report("I1", "write under an old epoch", execution, lane)
            self._newest[lane] = max(held, self._newest.get(lane, 0))

    def _see_lane(self, lane: str, before: str, after: str) -> None:
        if int(after) < int(before):
            self._ledger.report("I1", "epoch of a lane fell", lane, before, after)
        self._newest[lane] = max(int(after), self._newest.get(lane, 0))
