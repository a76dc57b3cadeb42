"""What is read from a Dockerfile, and from what buildah says when a build fails."""

import pytest

from exclave.runner.builds.images.dockerfile import (
    explain_failure,
    list_base_images,
    read_instructions,
)

TEXT = """# syntax=docker/dockerfile:1
FROM --platform=linux/amd64 node:20 AS build
# install
RUN npm ci \\
    --omit=dev

COPY --from=build /a /b
from build
FROM scratch
FROM registry.example.com/base:1 as last
"""


def test_instructions_have_the_line_that_they_begin_on() -> None:
    found = [(one.line, one.name) for one in read_instructions(TEXT)]

    assert found == [(2, "FROM"), (4, "RUN"), (7, "COPY"), (8, "FROM"), (9, "FROM"), (10, "FROM")]


def test_base_images_are_not_stages_and_not_scratch() -> None:
    images = list_base_images(read_instructions(TEXT))

    assert images == ["node:20", "registry.example.com/base:1"]


@pytest.mark.parametrize(
    ("args", "image"),
    [
        ({}, "registry.example.com/base:1.29"),
        ({"TAG": "2"}, "registry.example.com/base:2"),
        ({"HOST": "mirror.example.com", "OTHER": "x"}, "mirror.example.com/base:1.29"),
    ],
)
def test_the_name_of_a_base_image_may_have_arguments_in_it(
    args: dict[str, str], image: str
) -> None:
    text = (
        'ARG HOST\nARG TAG="1.29"\nFROM ${HOST:-registry.example.com}/base:$TAG AS one\n'
        "ARG TAG=9\nFROM one\nFROM $UNKNOWN\n"
    )

    assert list_base_images(read_instructions(text), args) == [image, "$UNKNOWN"]


STEP = '"RUN npm ci     --omit=dev"'
LINE = "Dockerfile:4: RUN npm ci     --omit=dev: exit 1; last line: npm says: no lock file"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (f"npm says: no lock file\nerror building at STEP {STEP}: runtime: exit status 1\n", LINE),
        (f"npm says: no lock file\nError: building at STEP {STEP}: exit status 1\n", LINE),
        ("Error: creating build container: name unknown\n", "Dockerfile: creating build"),
        ("", "Dockerfile: the build failed"),
    ],
)
def test_a_failure_is_one_line(output: str, line: str) -> None:
    message = explain_failure(TEXT, "Dockerfile", output).message

    assert message.startswith(line)
    assert "\n" not in message
