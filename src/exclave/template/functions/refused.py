"""sprig functions that are refused; they are defined so that the error can say why."""

from typing import NoReturn

from exclave.template.functions.signature import Param, Registry
from exclave.template.names import REASONS as REASONS
from exclave.template.problems import Fault
from exclave.template.values import Value

REFUSED = Registry()


def _refuse(name: str, reason: str) -> None:
    @REFUSED.add(name, rest=Param.ANY)
    def refuse(*_: Value) -> NoReturn:
        raise Fault(
            f"{name} is not available: it {reason}",
            hint="Hand the value in as an input or a secret.",
        )


for _name, _reason in REASONS.items():
    _refuse(_name, _reason)
