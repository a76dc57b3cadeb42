"""The digest of a Stack: it changes when the customer has to apply something else."""

import hashlib
import json
from dataclasses import asdict

from exclave.stacks.model import StackModel

FORMAT = 1
"""Raised when the forms change for the same model, so that every install gets a new version."""
_NOT_APPLIED = ("program", "keys")
"""A newer program and newer keys reach a machine in other ways than by a new Stack."""


def digest_model(model: StackModel) -> str:
    """Return the SHA-256 of a model, in hex; the same for the same model on every machine."""
    facts = {name: value for name, value in asdict(model).items() if name not in _NOT_APPLIED}
    text = json.dumps({"format": FORMAT, **facts}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
