"""Which program a runner on a machine in a cloud should run, signed like its jobs."""

from exclave.base.digests import canonical_json
from exclave.base.errors import NotFound
from exclave.control.deps import Deps
from exclave.control.stacks.program_archives import NoProgram, load_pins
from exclave.wire.stacks import RELEASE_SIGNED, ProgramOffer, ProgramRelease


async def offer_program(deps: Deps) -> ProgramOffer:
    """Return the program of this server's version; raise `NotFound` if it has none."""
    try:
        pins = await load_pins(deps)
    except NoProgram as problem:
        raise NotFound("this server offers no runner program", hint=problem.advice) from problem
    release = ProgramRelease(version=pins.version, x86_64=pins.x86_64, aarch64=pins.aarch64)
    payload = canonical_json(release.model_dump(mode="json"))
    signature = await deps.db.read(lambda tx: deps.keys.sign_detached(tx, RELEASE_SIGNED, payload))
    return ProgramOffer(release=payload.decode(), signature=signature)
