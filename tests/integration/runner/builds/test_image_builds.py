"""Images from Dockerfiles, built by a real buildah: equal digests, failures in one line."""

from pathlib import Path

import pytest

from exclave.base.secrets import Secret
from exclave.client.oci.client import Login, OciClient
from exclave.wire.jobs import OutcomeState, Reason
from tests.integration.runner.builds.image_kit import Yard
from tests.support.git import make_repo
from tests.support.images import describe_rootfs, make_image, make_tar_layer, push_image
from tests.support.registries import PASSWORD, USERNAME, serve_registry

PLAIN = 'FROM scratch\nARG NAME=none\nCOPY app.txt /app.txt\nLABEL name=$NAME\nCMD ["/app"]\n'


async def test_the_same_files_give_the_same_digest(yard: Yard) -> None:
    files = {"Dockerfile": PLAIN, "app.txt": "hello"}

    first = await yard.build(files)
    second = await yard.build(files)
    other = await yard.build({**files, "app.txt": "bye"})

    assert (first.state, first.message) == (OutcomeState.SUCCEEDED, "")
    assert first.outputs["digest"] == second.outputs["digest"] != other.outputs["digest"]
    assert await yard.own.has_manifest(str(first.outputs["digest"]))


async def test_build_args_and_a_target(yard: Yard) -> None:
    stages = "FROM scratch AS one\nARG NAME\nLABEL name=$NAME\nFROM one\nLABEL stage=two\n"

    outcome = await yard.build({"Dockerfile": stages}, build_args={"NAME": "shop"}, target="one")

    config = await yard.read_config(str(outcome.outputs["digest"]))
    assert config["config"]["Labels"] == {"name": "shop"}
    assert "build args: NAME" in yard.site.bench.read_log()


async def test_an_instruction_that_fails_is_named_with_its_line(yard: Yard) -> None:
    dockerfile = "FROM scratch\n\n# a comment\nCOPY missing.txt /x\n"

    outcome = await yard.build({"Dockerfile": dockerfile})

    assert outcome.reason is Reason.EXIT_CODE
    assert "Dockerfile:4: COPY missing.txt /x" in outcome.message
    assert "\n" not in outcome.message


async def test_a_command_that_cannot_start_is_named_with_its_line(yard: Yard) -> None:
    outcome = await yard.build({"Dockerfile": "FROM scratch\nRUN true\n"})

    assert outcome.reason is Reason.EXIT_CODE
    assert "Dockerfile:2: RUN true: " in outcome.message


async def test_a_base_image_behind_a_login(yard: Yard, tmp_path: Path) -> None:
    layer = make_tar_layer({"base.txt": b"base"})
    image = make_image(layer, config=describe_rootfs(layer))
    with serve_registry(tmp_path / "private", login=True) as url:
        login = Login(USERNAME, Secret(PASSWORD))
        async with OciClient(url, login=login) as client:
            await push_image(client.open_repository("acme/base"), image, tmp_path, "1")
        yard.credentials = {"prefix": url, "username": USERNAME, "password": PASSWORD}

        outcome = await yard.build(
            {"Dockerfile": f"FROM {url.removeprefix('http://')}/acme/base:1\nLABEL a=b\n"}
        )

    assert (outcome.state, outcome.message) == (OutcomeState.SUCCEEDED, "")
    assert PASSWORD not in yard.site.bench.read_log()


async def test_a_dockerfile_that_is_not_there(yard: Yard) -> None:
    outcome = await yard.build({"Dockerfile": PLAIN}, dockerfile="Nothing")

    assert outcome.reason is Reason.SOURCE_INVALID
    assert "there is no file `Nothing`" in outcome.message


async def test_without_buildah_the_build_says_what_to_install(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    outcome = await yard.build({"Dockerfile": PLAIN, "app.txt": "hello"})

    assert outcome.reason is Reason.TOOL_MISSING
    assert "install the package of your system" in outcome.message


async def test_a_folder_of_a_repository_is_built_and_two_builds_of_a_commit_agree(
    yard: Yard, tmp_path: Path
) -> None:
    repo = make_repo(tmp_path / "git", {"web/Dockerfile": PLAIN, "web/app.txt": "hello"})
    source = {"type": "git", "url": repo.url, "ref": "main", "directory": "web"}

    first = await yard.build_source(source)
    second = await yard.build_source(source)

    assert (first.state, first.message) == (OutcomeState.SUCCEEDED, "")
    assert first.outputs["commit"] == repo.git("rev-parse", "HEAD")
    assert first.outputs["digest"] == second.outputs["digest"]


@pytest.mark.parametrize("name", [".dockerignore", ".containerignore"])
async def test_a_context_is_a_folder_and_what_is_ignored_is_not_copied(
    yard: Yard, name: str
) -> None:
    files = {
        "docker/Web": "FROM scratch\nCOPY . /\n",
        "web/app.txt": "hello",
        "web/notes.md": "ours only",
        f"web/{name}": "*.md\n",
        "other.txt": "outside",
    }

    outcome = await yard.build(files, dockerfile="docker/Web", context="web")

    assert (outcome.state, outcome.message) == (OutcomeState.SUCCEEDED, "")
    assert await yard.list_files(str(outcome.outputs["digest"])) == {"app.txt", name}


async def test_a_context_outside_of_the_folder_is_refused(yard: Yard) -> None:
    outcome = await yard.build({"Dockerfile": PLAIN}, context="../elsewhere")

    assert outcome.reason is Reason.SOURCE_INVALID
    assert "`../elsewhere` is not a folder of the source" in outcome.message


async def test_several_platforms_become_one_index(yard: Yard) -> None:
    files = {"Dockerfile": PLAIN, "app.txt": "hello"}
    platforms = ["linux/amd64", "linux/arm64"]

    first = await yard.build(files, platforms=platforms)
    second = await yard.build(files, platforms=platforms)

    assert (first.state, first.message) == (OutcomeState.SUCCEEDED, "")
    assert first.outputs["digest"] == second.outputs["digest"]
    assert await yard.list_platforms(str(first.outputs["digest"])) == platforms


async def test_a_command_that_fails_is_named_with_its_line_and_its_last_words(yard: Yard) -> None:
    dockerfile = "FROM scratch\nCOPY programs /\nRUN echo no lock file; sleep 1; exit 7\n"

    outcome = await yard.build({"Dockerfile": dockerfile}, programs=True)

    assert outcome.reason is Reason.EXIT_CODE
    assert outcome.message.endswith(
        "Dockerfile:3: RUN echo no lock file; sleep 1; exit 7: exit 7; last line: no lock file"
    )


async def test_a_program_of_another_platform_is_explained(yard: Yard) -> None:
    files = {"Dockerfile": 'FROM scratch\nCOPY alien /alien\nRUN ["/alien"]\n'}

    outcome = await yard.build(files, alien=True, platforms=["linux/s390x"])

    assert outcome.reason is Reason.EXIT_CODE
    assert "Dockerfile:3: " in outcome.message
    assert "another platform (linux/s390x) and the build runner cannot emulate" in outcome.message


async def test_a_build_that_takes_too_long_is_ended(yard: Yard) -> None:
    yard.timeout_s = 5.0

    outcome = await yard.build(
        {"Dockerfile": "FROM scratch\nCOPY programs /\nRUN sleep 600\n"}, programs=True
    )

    assert outcome.reason is Reason.TIMEOUT
    assert "the build of the image was stopped by the job's timeout of 5 s" in outcome.message


async def test_a_build_that_fills_the_disk_is_ended(yard: Yard) -> None:
    dockerfile = "FROM scratch\nCOPY programs /\nRUN sleep 600\n"
    yard.make_disk_full_later()

    outcome = await yard.build({"Dockerfile": dockerfile}, programs=True)

    assert outcome.reason is Reason.DISK_FULL
    assert "free some space" in outcome.message
