"""A fleet of enrolled runners, written straight into a database: enrolling is not what is measured."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.base.digests import hash_token
from exclave.control.deps import Deps
from exclave.control.orgs.accounts import create_org
from exclave.domain.identity import QueueKind
from exclave.main.composition import build_deps
from exclave.main.settings import ServerSettings
from exclave.storage.engine.database import Tx
from exclave.storage.tables import installs, runners, work
from exclave.wire.envelope import encode_bytes
from exclave.wire.jobs import JobKind
from exclave.wire.runner import PROTOCOL

_GENERATION = 2


@dataclass(frozen=True, slots=True)
class Seeded:
    """What the load generator signs in with."""

    api_token: str
    queues: list[str]
    tokens: list[str]
    """An access token per runner; runner n works for queue n."""
    identities: list["Identity"]


@dataclass(frozen=True, slots=True)
class Identity:
    """What a runner replaces its access token with."""

    runner: str
    key: str
    """Its private key in hexadecimal digits."""
    nonce: str
    generation: int = _GENERATION


def seed_fleet(data: Path, url: str, count: int) -> Seeded:
    """Create an org with that many installs, and one runner for each."""
    deps = build_deps(ServerSettings(data=data, database=url))
    try:
        return deps.db.write_now(lambda tx: _seed(tx, deps, count))
    finally:
        deps.db.close()


def _seed(tx: Tx, deps: Deps, count: int) -> Seeded:
    made = create_org(tx, deps, "bench", "bench")
    names = [f"install-{number:05d}" for number in range(count)]
    queues = [deps.ids.new("ins") for _ in names]
    runner_ids = [deps.ids.new("run") for _ in names]
    tokens = [deps.ids.token("xcr") for _ in names]
    keys = [Ed25519PrivateKey.generate() for _ in names]
    nonces = [deps.ids.token("non")[4:] for _ in names]
    in_org = {"org_id": made.id}
    tx.insert_each(
        work.queues, [{**in_org, "id": queue, "kind": QueueKind.INSTALL} for queue in queues]
    )
    tx.insert_each(
        installs.installs,
        [
            {**in_org, "id": queue, "name": name, "labels": {}, "created_at": tx.now}
            for queue, name in zip(queues, names, strict=True)
        ],
    )
    tx.insert_each(
        runners.runners,
        [
            {
                **in_org,
                "id": runner,
                "queue_id": queue,
                "kind": QueueKind.INSTALL,
                "name": "runner",
                "state": "active",
                "public_key": encode_bytes(key.public_key().public_bytes_raw()),
                "generation": _GENERATION,
                "generation_used": True,
                "version": "bench",
                "protocol": PROTOCOL,
                "capabilities": [JobKind.NOOP],
                "stats": {},
                "created_at": tx.now,
            }
            for runner, queue, key in zip(runner_ids, queues, keys, strict=True)
        ],
    )
    known = {**in_org, "generation": _GENERATION, "expires_at": tx.now + timedelta(hours=1)}
    tx.insert_each(
        runners.runner_tokens,
        [
            {**known, "hash": hash_token(token), "runner_id": runner}
            for runner, token in zip(runner_ids, tokens, strict=True)
        ],
    )
    tx.insert_each(
        runners.runner_nonces,
        [
            {**known, "nonce": nonce, "runner_id": runner}
            for runner, nonce in zip(runner_ids, nonces, strict=True)
        ],
    )
    identities = [
        Identity(runner, key.private_bytes_raw().hex(), nonce)
        for runner, key, nonce in zip(runner_ids, keys, nonces, strict=True)
    ]
    return Seeded(made.token, queues, tokens, identities)
