"""Secrets of image builds: there for one command, and in nothing that is kept."""

import base64
import json

from exclave.wire.jobs import OutcomeState, Reason
from tests.integration.runner.builds.image_kit import Yard

TOKEN = "tok-9f8e7d6c5b4a"
MOUNT = "RUN --mount=type=secret,id=npm_token"


async def test_a_secret_is_in_no_layer_log_config_or_provenance(yard: Yard) -> None:
    yard.secrets = {"npm_token": TOKEN, "other": "not-asked-for"}
    dockerfile = (
        "FROM scratch\nCOPY programs /\n"
        f"{MOUNT} cat /run/secrets/npm_token && cat /run/secrets/npm_token | tr a-z b-za > /made\n"
    )

    outcome = await yard.build({"Dockerfile": dockerfile}, programs=True, secrets=["npm_token"])

    assert (outcome.state, outcome.message) == (OutcomeState.SUCCEEDED, "")
    digest = str(outcome.outputs["digest"])
    layers = b"".join(await yard.read_layers(digest))
    assert b"upl-9g8f7e6d5c4b" in layers, "the command did not see the secret"
    kept = [layers, json.dumps(await yard.read_config(digest)).encode()]
    kept += [await yard.read_blob(one) for one in await yard.list_referrer_blobs(digest)]
    kept.append(yard.site.bench.read_log().encode())
    for needle in (TOKEN.encode(), base64.b64encode(TOKEN.encode())):
        assert not [data for data in kept if needle in data]
    assert "secrets: npm_token" in yard.site.bench.read_log()
    assert not list(yard.site.bench.folder.glob("job/secrets/*"))


async def test_an_image_with_a_secret_in_it_is_refused_and_not_pushed(yard: Yard) -> None:
    yard.secrets = {"npm_token": TOKEN}
    dockerfile = f"FROM scratch\nCOPY programs /\n{MOUNT} cat /run/secrets/npm_token > /kept\n"

    outcome = await yard.build({"Dockerfile": dockerfile}, programs=True, secrets=["npm_token"])

    assert outcome.reason is Reason.SOURCE_INVALID
    assert "the image would contain the secret `npm_token`" in outcome.message
    assert "step push" not in yard.site.bench.read_log()


async def test_a_secret_that_the_runner_does_not_have_is_named(yard: Yard) -> None:
    outcome = await yard.build({"Dockerfile": "FROM scratch\n"}, secrets=["npm_token"])

    assert outcome.reason is Reason.SECRET_MISSING
    assert "the runner has no secret `npm_token`" in outcome.message


async def test_a_failing_command_does_not_tell_a_secret(yard: Yard) -> None:
    yard.secrets = {"npm_token": TOKEN}
    dockerfile = f"FROM scratch\nCOPY programs /\n{MOUNT} cat /run/secrets/npm_token; exit 1\n"

    outcome = await yard.build({"Dockerfile": dockerfile}, programs=True, secrets=["npm_token"])

    assert outcome.reason is Reason.EXIT_CODE
    assert "Dockerfile:3: " in outcome.message
    assert TOKEN not in outcome.message
