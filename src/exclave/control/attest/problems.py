"""What a machine is told that does not become a runner: as little as possible."""

from exclave.base.errors import Forbidden, Unavailable


class AttestationRefused(Forbidden):
    """The evidence of a machine is not accepted. Only the audit log says why."""

    code = "attestation_refused"
    hint = (
        "The vendor finds the reason in the audit log. Ask them whether the install expects this"
        " account and region, and check this machine's clock."
    )

    def __init__(self) -> None:
        super().__init__("the control plane does not accept this machine's evidence")


class AttestationUnconfirmed(Unavailable):
    """The evidence is good, and somebody has to confirm the account before a runner enrols."""

    code = "attestation_unconfirmed"
    hint = "Wait: the vendor confirms the account with `exclave installs confirm-account`."


class AttestationUnavailable(Unavailable):
    """This control plane cannot verify evidence of this cloud, or not now."""

    code = "attestation_unavailable"
    hint = (
        "Enrol with a one-time code, or ask the operator to allow the cloud in EXCLAVE_ATTEST and a"
        " way out to it."
    )
