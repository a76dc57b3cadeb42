"""Terraform's plugin protocol over the facts of a provider: it plans, and pretends to apply."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
from tf.gen import tfplugin_pb2 as pb
from tf.gen import tfplugin_pb2_grpc
from tf.types import Unknown
from tf.utils import read_dynamic_value, to_dynamic_value

from tests.support.stand_ins.schema import Block, is_write_only, read_provider
from tests.support.stand_ins.values import fill

JOURNAL = "EXCLAVE_STAND_IN_JOURNAL"
"""Names a file to which every change is added, one JSON object on a line, with what is write-only."""
DATA = "data."
Values = dict[str, Any]


class StandIn(tfplugin_pb2_grpc.ProviderServicer):  # type: ignore[misc]
    """One provider. What the protocol does not need for modules of ours is left unimplemented."""

    def __init__(self, name: str) -> None:
        self.kinds = read_provider(name)
        self.settings: Values = {}

    def GetMetadata(self, request: Any, context: Any) -> None:  # noqa: N802 - named by the protocol
        """Send Terraform to the whole schema."""
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "read the schema")

    def GetProviderSchema(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Return all types: Terraform itself refuses what they do not have."""
        schemas = {
            kind: pb.Schema(version=0, block=block.describe()) for kind, block in self.kinds.items()
        }
        provider = schemas.pop("provider")
        data = {kind: schemas.pop(kind) for kind in tuple(schemas) if kind.startswith(DATA)}
        return pb.GetProviderSchema.Response(
            provider=provider,
            provider_meta=pb.Schema(block=pb.Schema.Block()),
            resource_schemas=schemas,
            data_source_schemas={kind.removeprefix(DATA): told for kind, told in data.items()},
        )

    def ValidateProviderConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Accept what the schema accepts."""
        return pb.ValidateProviderConfig.Response()

    def ValidateResourceConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Refuse a value for what only the cloud can fill in; Terraform checks all else."""
        config = read_dynamic_value(request.config)
        faults = [
            pb.Diagnostic(
                severity=pb.Diagnostic.ERROR,
                summary="Value for unconfigurable attribute",
                detail=f"{request.type_name}: `{name}` is decided by the provider.",
            )
            for name in _list_unconfigurable(self.kinds[request.type_name], config)
        ]
        return pb.ValidateResourceConfig.Response(diagnostics=faults)

    def ValidateDataResourceConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Accept what the schema accepts."""
        return pb.ValidateDataResourceConfig.Response()

    def ConfigureProvider(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Remember the settings: `project` and `region` are the defaults of resources."""
        self.settings = read_dynamic_value(request.config)
        return pb.ConfigureProvider.Response()

    def UpgradeResourceState(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Return the state as it is: there is one version of each schema."""
        state = json.loads(request.raw_state.json)
        return pb.UpgradeResourceState.Response(upgraded_state=to_dynamic_value(state))

    def ReadResource(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Find everything as it was left."""
        return pb.ReadResource.Response(new_state=request.current_state)

    def ReadDataSource(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Make up what is asked for."""
        kind = DATA + request.type_name
        state = self._complete(kind, self.kinds[kind], read_dynamic_value(request.config))
        return pb.ReadDataSource.Response(state=to_dynamic_value(state))

    def PlanResourceChange(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Plan what was proposed; what the cloud fills in is not known before."""
        proposed = read_dynamic_value(request.proposed_new_state)
        if proposed is None:
            return pb.PlanResourceChange.Response(planned_state=request.proposed_new_state)
        is_new = read_dynamic_value(request.prior_state) is None
        planned = _plan(self.kinds[request.type_name], proposed, is_new=is_new)
        return pb.PlanResourceChange.Response(planned_state=to_dynamic_value(planned))

    def ApplyResourceChange(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Fill in what the cloud would, and write down what was asked."""
        planned = read_dynamic_value(request.planned_state)
        prior = read_dynamic_value(request.prior_state)
        kind = request.type_name
        if planned is None:
            _write_journal("delete", kind, prior)
            return pb.ApplyResourceChange.Response(new_state=request.planned_state)
        state = self._complete(kind, self.kinds[kind], planned)
        config = read_dynamic_value(request.config)
        secret = {name: value for name, value in config.items() if is_write_only(name)}
        _write_journal("create" if prior is None else "update", kind, {**state, **secret})
        return pb.ApplyResourceChange.Response(new_state=to_dynamic_value(state))

    def StopProvider(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Stop; the server ends with the process."""
        return pb.StopProvider.Response()

    def _complete(self, kind: str, block: Block, planned: Values) -> Values:
        given = {name: value for name, value in self.settings.items() if isinstance(value, str)}
        known = {name: value for name, value in planned.items() if value is not Unknown}
        # First what others are made of, such as the project.
        for name in ("project", "region"):
            if known.get(name) is None and name in block.attributes and name in given:
                known[name] = given[name]
        return _complete(kind, block, {**planned, **known}, known)


def _list_unconfigurable(block: Block, config: Values) -> list[str]:
    found = [
        name
        for name, (_, flags) in block.attributes.items()
        if flags == "c" and config[name] is not None
    ]
    for name, nested in block.blocks.items():
        inner = config[name] if isinstance(config[name], list) else []
        found += [
            f"{name}.{one}" for values in inner for one in _list_unconfigurable(nested, values)
        ]
    return found


def _plan(block: Block, proposed: Values, *, is_new: bool) -> Values:
    planned = dict(proposed)
    for name, (_, flags) in block.attributes.items():
        if is_write_only(name):
            planned[name] = None
        elif is_new and "c" in flags and planned[name] is None:
            planned[name] = Unknown
    for name, nested in block.blocks.items():
        if planned[name] is not Unknown:
            planned[name] = [_plan(nested, one, is_new=is_new) for one in planned[name] or []]
    return planned


def _complete(kind: str, block: Block, planned: Values, known: Mapping[str, Any]) -> Values:
    state = dict(planned)
    for name, (type_, flags) in block.attributes.items():
        empty = state[name] is Unknown or (state[name] is None and "c" in flags)
        if empty:
            state[name] = fill(kind, known, name, type_)
    for name, nested in block.blocks.items():
        inner = state[name] or []
        state[name] = [_complete(f"{kind}.{name}", nested, one, known) for one in inner]
    return state


def _write_journal(operation: str, kind: str, values: Values) -> None:
    if path := os.environ.get(JOURNAL):
        line = json.dumps({"operation": operation, "type": kind, "values": values})
        with Path(path).open("a") as journal:
            journal.write(line + "\n")
