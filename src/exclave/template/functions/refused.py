"""Functions that sprig has and we refuse: they exist so that the error can say why."""

from typing import NoReturn

from exclave.template.functions.signature import Param, Registry
from exclave.template.problems import Fault
from exclave.template.values import Value

REFUSED = Registry()

_REASONS = {
    "reads the environment of the server": ("env", "expandenv"),
    "looks up names on the network": ("getHostByName",),
    "is random, so that two renderings would differ": (
        "randAlpha", "randAlphaNum", "randAscii", "randBytes", "randInt", "randNumeric", "shuffle",
        "uuidv4",
    ),
    "makes or uses keys and passwords, which do not belong into a template": (
        "bcrypt", "buildCustomCert", "decryptAES", "derivePassword", "encryptAES", "genCA",
        "genCAWithKey", "genPrivateKey", "genSelfSignedCert", "genSelfSignedCertWithKey",
        "genSignedCert", "genSignedCertWithKey", "htpasswd",
    ),
}  # fmt: skip

REASONS = {name: reason for reason, names in _REASONS.items() for name in names}
"""Why each function is refused."""


def _refuse(name: str, reason: str) -> None:
    @REFUSED.add(name, rest=Param.ANY)
    def refuse(*_: Value) -> NoReturn:
        raise Fault(
            f"{name} is not available: it {reason}",
            hint="Hand the value in as an input or a secret.",
        )


for _name, _reason in REASONS.items():
    _refuse(_name, _reason)
