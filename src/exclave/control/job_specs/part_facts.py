"""Facts about an install that the job of a part is made from, beside the part's definition."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from exclave.appconfig.model.kinds.policies import Policy
from exclave.wire.specs import Artifact

Render = Callable[[str, str], str]
"""Renders a template with the install's state; the second text says where it is written."""


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What the job of a part depends on beside its definition and its intent."""

    artifact: Artifact
    """What was built from the part's source."""
    render: Render
    overrides: Mapping[str, str]
    """What the install sets for this component, such as `tf_vars`."""
    policies: tuple[Policy, ...] = ()
    """The policies that a plan of this part has to pass; each has a name."""
