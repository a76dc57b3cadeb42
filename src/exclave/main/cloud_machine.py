"""The runner on a machine in a cloud: what its boot script left, and how it enrols."""

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.client.attest import HttpAttestApi
from exclave.client.transport import Link
from exclave.main.settings import RunnerSettings
from exclave.runner.cloud.attest import choose_witness
from exclave.runner.cloud.boot import Boot, read_boot
from exclave.runner.cloud.enrolling import CloudEnrolment
from exclave.runner.cloud.imds import METADATA

_LONGEST_NAME = 63


def follow_boot(settings: RunnerSettings) -> tuple[RunnerSettings, Boot | None]:
    """Return the settings with what the boot script decided, and its facts if there are any."""
    if settings.boot is None:
        return settings, None
    boot = read_boot(settings.boot)
    name = f"{boot.cloud}-{boot.install}"[:_LONGEST_NAME]
    known = {"runner_url": boot.runner_url, "runner_name": name, "enrolment": boot.code or ""}
    return settings.model_copy(update=known), boot


def make_cloud_enrolment(
    boot: Boot, settings: RunnerSettings, link: Link, clock: Clock, randomness: Randomness
) -> CloudEnrolment:
    """Return how the machine enrols."""
    witness = choose_witness(boot, clock, settings.metadata_url or METADATA)
    return CloudEnrolment(boot, witness, HttpAttestApi(link), clock, randomness)


def list_pinned_keys(boot: Boot) -> dict[str, str]:
    """Return the control plane's keys that the Stack pinned."""
    return {key.kid: key.public_key for key in boot.keys}
