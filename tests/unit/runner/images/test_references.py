"""Names of images as people write them."""

import pytest

from exclave.runner.images.references import parse_image
from exclave.runner.outcomes import WorkFailed

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "repository", "url"),
    [
        ("nginx", "docker.io/library/nginx", "https://registry-1.docker.io"),
        ("acme/app", "docker.io/acme/app", "https://registry-1.docker.io"),
        ("docker.io/library/nginx", "docker.io/library/nginx", "https://registry-1.docker.io"),
        ("ghcr.io/acme/app", "ghcr.io/acme/app", "https://ghcr.io"),
        ("https://ghcr.io/acme/app", "ghcr.io/acme/app", "https://ghcr.io"),
        ("localhost/app", "localhost/app", "http://localhost"),
        ("127.0.0.1:5000/a/b", "127.0.0.1:5000/a/b", "http://127.0.0.1:5000"),
        ("registry:5000/app", "registry:5000/app", "https://registry:5000"),
    ],
)
def test_the_registry_that_a_name_means(text: str, repository: str, url: str) -> None:
    name = parse_image(text)

    assert (name.repository, name.url) == (repository, url)


def test_a_tag_and_a_digest_of_a_name() -> None:
    assert parse_image("nginx:1.29").tag == "1.29"
    assert parse_image(f"nginx@{DIGEST}").digest == DIGEST
    assert parse_image(f"ghcr.io/a/b:1@{DIGEST}").tag == "1"


@pytest.mark.parametrize(
    "text", ["", "UPPER", "a b", "a//b", "ghcr.io/", "nginx@sha256:x", "x:y z", "../a"]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(WorkFailed, match="is not the name of an image"):
        parse_image(text)
